// A volunteer whose time ends leaves while a round and the hand-over still fit.
#include <catch2/catch.hpp>

#include "tests/support/volunteer_driver.hpp"

namespace gleaner::volunteer {
namespace {

using Phase = Snapshot::Phase;

constexpr LeaseRef kLent{ShardId{1}, LeaseEpoch{4}};
constexpr Millis kLeaveGrace{10'000};

// Its time ends `left` after the driver's clock begins.
VolunteerCoreConfig until(Millis left) {
  VolunteerCoreConfig config = VolunteerDriver::tiny_config();
  config.leave_grace = kLeaveGrace;
  config.until = VolunteerDriver(config).now() + left;
  return config;
}

// Connected, with one shard ready.
struct Ending : VolunteerDriver {
  explicit Ending(Millis left) : VolunteerDriver(until(left)) {
    join();
    LeaseGrant grant;
    grant.lease = kLent;
    receive(grant);
    finish_work({ShardReady{kLent}});
    take<ShardReady>();
  }

  // The master tells of this checkpoint once a second.
  void wait(Millis time, RoundIndex checkpoint) {
    Heartbeat heartbeat;
    heartbeat.news = RunNews{};
    heartbeat.news->round = checkpoint;
    receive(heartbeat);
    for (Millis passed{0}; passed < time; passed += Millis(1'000)) {
      tick(Millis(1'000));
      receive(heartbeat);
    }
  }

  bool is_leaving() {
    bool found = false;
    for (const Message& message : sent) found |= std::holds_alternative<Leaving>(message);
    sent.clear();
    return found;
  }
};

}  // namespace

TEST_CASE("until: it leaves when no more than two rounds and the grace are left", "[volunteer]") {
  Ending driver(Millis(400'000));
  driver.wait(Millis(15'000), 7);  // it saw no beginning of this round
  for (RoundIndex checkpoint = 8; checkpoint < 11; ++checkpoint) {
    driver.wait(Millis(60'000), checkpoint);
  }
  // 205 s are left, a round takes 60.
  driver.wait(Millis(60'000), 11);
  REQUIRE_FALSE(driver.is_leaving());
  driver.wait(Millis(14'000), 12);
  REQUIRE_FALSE(driver.is_leaving());
  driver.wait(Millis(2'000), 12);
  REQUIRE(driver.is_leaving());
  REQUIRE(driver.snapshot().phase == Phase::kLeaving);
  REQUIRE_THAT(driver.snapshot().sentence, Catch::Contains("its time here ends in"));
  // The hand-over may take all that is left but what the program needs to end.
  driver.wait(Millis(120'000), 12);
  REQUIRE_FALSE(driver.exit.has_value());
  driver.receive(ReleaseRequest{kLent});
  driver.finish_work({HandOver{kLent, 0, 2, 0, 1, {}}});
  driver.receive(Goodbye{ErrorCode::kShuttingDown, "all its shards are handed over"});
  REQUIRE(driver.exit.has_value());
  REQUIRE(driver.exit->success);
}

TEST_CASE("until: before a round was timed it leaves when the grace is left", "[volunteer]") {
  Ending driver(Millis(60'000));
  driver.wait(Millis(49'000), 3);
  REQUIRE_FALSE(driver.is_leaving());
  driver.wait(Millis(1'000), 3);
  REQUIRE(driver.is_leaving());
  driver.wait(Millis(7'000), 3);
  REQUIRE_FALSE(driver.exit.has_value());
  driver.wait(Millis(1'000), 3);  // 2 s are left, and the master has not answered
  REQUIRE(driver.exit.has_value());
}

TEST_CASE("until: one round that waited for others is not taken for the usual one", "[volunteer]") {
  Ending driver(Millis(800'000));
  RoundIndex checkpoint = 1;
  driver.wait(Millis(1'000), checkpoint);
  for (const std::int64_t seconds : {10, 10, 600, 10, 10}) {
    driver.wait(Millis(seconds * 1000), ++checkpoint);
  }
  driver.wait(Millis(100'000), 7);  // 59 s are left
  REQUIRE_FALSE(driver.is_leaving());
}

TEST_CASE("until: with too little time it never connects, and does not wait for a master",
          "[volunteer]") {
  VolunteerDriver late(until(kLeaveGrace));
  late.handle(Started{});
  REQUIRE(late.connects == 0);
  REQUIRE(late.exit.has_value());
  REQUIRE(late.exit->success);
  VolunteerDriver alone(until(kLeaveGrace * 2));
  alone.handle(Started{});
  alone.handle(ConnectFailed{"nobody is there"});
  alone.tick(kLeaveGrace);
  REQUIRE(alone.exit.has_value());
  REQUIRE_THAT(alone.exit->error.message, Catch::Contains("its time here ends"));
}

TEST_CASE("until: one that rests for a while ends too", "[volunteer]") {
  Ending driver(Millis(60'000));
  driver.handle(PauseRequested{"the machine is in use", Millis(0), Millis(20'000)});
  REQUIRE(driver.is_leaving());
  driver.receive(Goodbye{ErrorCode::kShuttingDown, "all its shards are handed over"});
  driver.handle(Disconnected{"closed"});
  driver.finish_work();
  driver.tick(Millis(30'000));
  REQUIRE_FALSE(driver.exit.has_value());
  driver.tick(Millis(20'000));
  REQUIRE(driver.exit.has_value());
}

}  // namespace gleaner::volunteer

// A pause: compute stops at once, shards stay for a while, then they are handed over.
#include <catch2/catch.hpp>

#include "tests/support/volunteer_driver.hpp"

namespace gleaner::volunteer {
namespace {

using Phase = Snapshot::Phase;

constexpr LeaseRef kHeld{ShardId{1}, LeaseEpoch{4}};
constexpr Millis kKeep{120'000};
constexpr Millis kGrace{60'000};

// Connected, with one shard ready.
struct Holding : VolunteerDriver {
  Holding() {
    join();
    LeaseGrant grant;
    grant.lease = kHeld;
    receive(grant);
    finish_work({ShardReady{kHeld}});
    take<ShardReady>();
  }

  // Time passes while the master is heard.
  void wait(Millis time) {
    for (Millis passed{0}; passed < time; passed += Millis(1'000)) {
      tick(Millis(1'000));
      receive(Heartbeat{});
    }
  }

  // The last message of this type that was sent; everything is taken.
  template <typename T>
  std::optional<T> last() {
    std::optional<T> found;
    for (Message& message : sent) {
      if (auto* match = std::get_if<T>(&message)) found = std::move(*match);
    }
    sent.clear();
    return found;
  }
};

bool forgets(const VolunteerDriver& driver) {
  return !driver.work.empty() && std::holds_alternative<Forget>(driver.work.front().work);
}

}  // namespace

TEST_CASE("pause: compute stops at once, the master is told, and a resume goes on with the shards",
          "[volunteer]") {
  Holding driver;
  REQUIRE(driver.core().may_compute());
  driver.handle(PauseRequested{"the machine is in use", kKeep, kGrace});
  REQUIRE_FALSE(driver.core().may_compute());
  REQUIRE(driver.take<Heartbeat>().paused == "the machine is in use");
  REQUIRE(driver.snapshot().phase == Phase::kPaused);
  REQUIRE_THAT(driver.snapshot().sentence, Catch::Contains("in use"));
  driver.wait(kKeep - Millis(2'000));
  REQUIRE_FALSE(driver.core().may_compute());
  REQUIRE(driver.last<Heartbeat>()->paused == "the machine is in use");
  driver.handle(ResumeRequested{});
  REQUIRE(driver.core().may_compute());
  REQUIRE(driver.take<Heartbeat>().paused.empty());
  REQUIRE(driver.snapshot().phase == Phase::kTraining);
  REQUIRE(driver.snapshot().shards.size() == 1);
}

TEST_CASE("pause: a longer one hands over, gives the memory back and stays away until it is over",
          "[volunteer]") {
  Holding driver;
  driver.handle(PauseRequested{"the machine is in use", kKeep, kGrace});
  driver.wait(kKeep);
  REQUIRE(driver.last<Leaving>()->reason == "the machine is in use");
  REQUIRE(driver.core().may_compute());  // what is under way has to end before the hand-over
  REQUIRE(driver.snapshot().phase == Phase::kLeaving);
  driver.receive(ReleaseRequest{kHeld});
  driver.finish_work({HandOver{kHeld, 0, 2, 0, 1, {}}});
  REQUIRE(driver.last<HandOver>()->lease == kHeld);
  driver.receive(Goodbye{ErrorCode::kShuttingDown, "all its shards are handed over"});
  REQUIRE(driver.disconnects == 1);
  driver.handle(Disconnected{"closed"});
  REQUIRE(forgets(driver));
  driver.finish_work();
  REQUIRE_FALSE(driver.exit.has_value());
  REQUIRE(driver.snapshot().phase == Phase::kPaused);
  driver.tick(Millis(3'600'000));
  REQUIRE(driver.connects == 1);
  driver.handle(ResumeRequested{});
  REQUIRE(driver.connects == 2);
  driver.handle(Connected{});
  REQUIRE(driver.take<Hello>().kept_shards == 0);
}

TEST_CASE("pause: one that keeps nothing hands over at once", "[volunteer]") {
  Holding driver;
  driver.handle(PauseRequested{"the machine is about to sleep", Millis(0), Millis(4'000)});
  REQUIRE(driver.last<Leaving>().has_value());
  driver.tick(Millis(4'000));
  REQUIRE(driver.last<Goodbye>().has_value());  // the master took too long
  REQUIRE(driver.disconnects == 1);
  driver.handle(Disconnected{"closed"});
  REQUIRE(forgets(driver));
  REQUIRE_FALSE(driver.exit.has_value());
}

TEST_CASE("pause: a second request never makes the hand-over later", "[volunteer]") {
  Holding driver;
  driver.handle(PauseRequested{"the machine is in use", kKeep, kGrace});
  driver.wait(Millis(60'000));
  driver.handle(PauseRequested{"the machine runs on battery", kKeep, kGrace});
  REQUIRE(driver.last<Heartbeat>()->paused == "the machine runs on battery");
  driver.wait(Millis(60'000));
  REQUIRE(driver.last<Leaving>()->reason == "the machine runs on battery");
}

TEST_CASE("pause: a resume during the hand-over connects again as soon as it is done",
          "[volunteer]") {
  Holding driver;
  driver.handle(PauseRequested{"the machine is in use", Millis(0), kGrace});
  driver.handle(ResumeRequested{});
  driver.receive(Goodbye{ErrorCode::kShuttingDown, "all its shards are handed over"});
  driver.handle(Disconnected{"closed"});
  REQUIRE(forgets(driver));
  driver.finish_work();
  driver.tick();
  REQUIRE(driver.connects == 2);
}

TEST_CASE("pause: without a connection there is no attempt to make one", "[volunteer]") {
  VolunteerDriver driver;
  driver.handle(Started{});
  driver.handle(ConnectFailed{"refused"});
  driver.handle(PauseRequested{"the machine is in use", kKeep, kGrace});
  driver.tick(Millis(3'600'000));
  REQUIRE(driver.connects == 1);
  REQUIRE(driver.snapshot().phase == Phase::kPaused);
  driver.handle(ResumeRequested{});
  REQUIRE(driver.connects == 2);
  // A pause while it dials: it says so as soon as it is admitted, and leaves in time.
  driver.handle(PauseRequested{"the machine is in use", Millis(0), kGrace});
  driver.handle(Connected{});
  driver.take<Hello>();
  driver.receive(VolunteerDriver::welcome());
  REQUIRE_FALSE(driver.take<Heartbeat>().paused.empty());
  REQUIRE(driver.take<Leaving>().reason == "the machine is in use");
}

TEST_CASE("pause: shards outlive a connection that breaks in it, until their time is over",
          "[volunteer]") {
  Holding quick;
  quick.handle(PauseRequested{"the machine is in use", kKeep, kGrace});
  quick.handle(Disconnected{"reset"});
  quick.tick(kKeep - Millis(1'000));
  REQUIRE_FALSE(quick.core().may_compute());
  quick.handle(ResumeRequested{});
  quick.sent.clear();
  quick.handle(Connected{});
  REQUIRE(quick.take<Hello>().kept_shards == 1);

  Holding slow;
  slow.handle(PauseRequested{"the machine is in use", kKeep, kGrace});
  slow.handle(Disconnected{"reset"});
  slow.tick(kKeep);
  REQUIRE(forgets(slow));
  REQUIRE(slow.core().may_compute());
  slow.handle(StopRequested{"asked to stop"});
  REQUIRE(slow.exit->success);
}

TEST_CASE("pause: a stop in it hands over and ends the program", "[volunteer]") {
  Holding driver;
  driver.handle(PauseRequested{"the machine is in use", kKeep, kGrace});
  driver.handle(StopRequested{"asked to stop", Millis(4'000)});
  REQUIRE(driver.core().may_compute());
  REQUIRE(driver.last<Leaving>()->reason == "asked to stop");
  driver.tick(Millis(4'000));
  REQUIRE(driver.exit->success);

  // A SIGTERM during the hand-over of a pause goes on with that hand-over.
  Holding leaving;
  leaving.handle(PauseRequested{"the machine is in use", Millis(0), kGrace});
  leaving.sent.clear();
  leaving.handle(StopRequested{"asked to stop"});
  REQUIRE_FALSE(leaving.last<Leaving>().has_value());
  REQUIRE_FALSE(leaving.exit.has_value());
  leaving.receive(Goodbye{ErrorCode::kShuttingDown, "all its shards are handed over"});
  REQUIRE(leaving.exit->success);
}

}  // namespace gleaner::volunteer

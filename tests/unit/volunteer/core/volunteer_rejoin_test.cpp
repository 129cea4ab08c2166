// Coming back with shards that were kept: announcing, offering, being granted or turned down.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/support/volunteer_driver.hpp"

namespace gleaner::volunteer {
namespace {

using Phase = Snapshot::Phase;

LeaseRef lease(std::uint32_t shard, std::uint64_t epoch) {
  return {ShardId{shard}, LeaseEpoch{epoch}};
}

LeaseGrant grant_of(std::uint32_t shard, std::uint64_t epoch, bool is_held) {
  LeaseGrant message;
  message.lease = lease(shard, epoch);
  message.base_round = 1;
  message.is_held = is_held;
  return message;
}

ShardOffer offer(std::vector<OfferedShard> shards) {
  return {1, std::move(shards)};
}

// A volunteer that trains shards 1 and 2.
VolunteerDriver holder() {
  VolunteerDriver driver;
  driver.join();
  for (const std::uint32_t shard : {1u, 2u}) {
    driver.receive(grant_of(shard, 5, false));
    driver.finish_work({ShardReady{lease(shard, 5)}});
    driver.take<ShardReady>();
  }
  return driver;
}

// Passes time until it dials again, and connects.
Hello dial_again(VolunteerDriver& driver) {
  const std::uint32_t before = driver.connects;
  while (driver.connects == before) driver.tick(Millis(10));
  driver.handle(Connected{});
  return driver.take<Hello>();
}

// Does so until the master has welcomed it at checkpoint 1.
Hello rejoin(VolunteerDriver& driver) {
  const Hello hello = dial_again(driver);
  Welcome welcome = VolunteerDriver::welcome();
  welcome.checkpoint = 1;
  driver.receive(welcome);
  return hello;
}

const Reset& reset_of(const VolunteerDriver& driver) {
  return std::get<Reset>(driver.work.front().work);
}

}  // namespace

TEST_CASE("rejoin: input shards are announced as those of the output layer are", "[volunteer]") {
  VolunteerDriver driver;
  driver.join();
  driver.receive(grant_of(4, 5, false));  // behind the four output shards
  driver.finish_work({ShardReady{lease(4, 5)}});
  driver.take<ShardReady>();
  driver.handle(Disconnected{"reset"});
  REQUIRE(rejoin(driver).kept_shards == 1);
  REQUIRE(reset_of(driver).checkpoint == RoundIndex{1});
}

TEST_CASE("rejoin: shards that were ready are announced, stepped back and offered", "[volunteer]") {
  VolunteerDriver driver = holder();
  driver.handle(Disconnected{"reset"});
  REQUIRE(rejoin(driver).kept_shards == 2);
  REQUIRE(reset_of(driver).checkpoint == RoundIndex{1});
  const ShardOffer both = offer({{lease(1, 5), {3, 4}}, {lease(2, 5), {5, 6}}});
  driver.finish_work({both});
  REQUIRE(driver.take<ShardOffer>() == both);
  REQUIRE(driver.snapshot().phase == Phase::kWaiting);
  REQUIRE_THAT(driver.snapshot().sentence, Catch::Contains("offering the master 2 shards"));

  driver.receive(grant_of(1, 9, true));
  driver.receive(grant_of(2, 10, true));
  REQUIRE(driver.snapshot().phase == Phase::kLoading);
  REQUIRE(driver.snapshot().sentence ==
          "stepped back to checkpoint 1 with 2 shards it kept; nothing to download");
  driver.finish_work({ShardReady{lease(1, 9)}});
  driver.finish_work({ShardReady{lease(2, 10)}});
  driver.take<ShardReady>();
  driver.take<ShardReady>();
  REQUIRE(driver.sent.empty());  // not one chunk is asked for
  REQUIRE(driver.snapshot().phase == Phase::kTraining);
  REQUIRE(driver.snapshot().shards.size() == 2);
}

TEST_CASE("rejoin: a volunteer without shards announces and offers nothing", "[volunteer]") {
  VolunteerDriver driver;
  driver.join();
  driver.receive(grant_of(1, 5, false));  // being loaded is not having
  driver.handle(Disconnected{"reset"});
  REQUIRE(rejoin(driver).kept_shards == 0);
  driver.finish_work();
  REQUIRE_FALSE(reset_of(driver).checkpoint.has_value());
  driver.finish_work();
  REQUIRE(driver.sent.empty());
}

TEST_CASE("rejoin: what the master turns down is forgotten, and no longer announced",
          "[volunteer]") {
  VolunteerDriver driver = holder();
  driver.handle(Disconnected{"reset"});
  rejoin(driver);
  driver.finish_work({offer({{lease(1, 5), {}}, {lease(2, 5), {}}})});
  driver.take<ShardOffer>();
  driver.receive(Revoke{lease(1, 5)});
  REQUIRE(std::get<Revoke>(std::get<Message>(driver.work.front().work)).lease == lease(1, 5));
  driver.finish_work();
  driver.handle(Disconnected{"reset"});
  REQUIRE(dial_again(driver).kept_shards == 1);
}

TEST_CASE("rejoin: shards survive connections that break before they are granted", "[volunteer]") {
  VolunteerDriver driver = holder();
  driver.handle(Disconnected{"reset"});
  REQUIRE(dial_again(driver).kept_shards == 2);
  driver.handle(Disconnected{"before the welcome"});
  REQUIRE(rejoin(driver).kept_shards == 2);
  driver.handle(Disconnected{"while it steps back"});
  driver.finish_work({offer({})});  // of the earlier connection: not said
  REQUIRE(rejoin(driver).kept_shards == 2);
  driver.finish_work({offer({{lease(2, 5), {}}})});
  driver.take<ShardOffer>();
  driver.handle(Disconnected{"before the grants"});
  REQUIRE(rejoin(driver).kept_shards == 1);
}

TEST_CASE("rejoin: an offer that was announced is made even when nothing is left", "[volunteer]") {
  VolunteerDriver driver = holder();
  driver.handle(Disconnected{"reset"});
  REQUIRE(dial_again(driver).kept_shards == 2);
  Welcome welcome = VolunteerDriver::welcome();
  ++welcome.model.seed;  // another run
  driver.receive(welcome);
  REQUIRE(reset_of(driver).checkpoint.has_value());
  driver.finish_work({offer({})});
  REQUIRE(driver.take<ShardOffer>().shards.empty());
  driver.handle(Disconnected{"reset"});
  REQUIRE(dial_again(driver).kept_shards == 0);
}

TEST_CASE("rejoin: a frozen volunteer that was given up comes back the same way", "[volunteer]") {
  VolunteerDriver driver = holder();
  driver.receive(Refusal{ErrorCode::kStaleLease, "silent for 10 s: connect again", true});
  REQUIRE_THAT(driver.snapshot().sentence, Catch::Contains("silent for 10 s"));
  driver.handle(Disconnected{"closed"});
  REQUIRE(rejoin(driver).kept_shards == 2);
  REQUIRE(reset_of(driver).checkpoint == RoundIndex{1});
}

TEST_CASE("rejoin: while it keeps shards it tries again every second", "[volunteer]") {
  VolunteerDriver driver = holder();
  driver.handle(Disconnected{"reset"});
  for (int attempt = 0; attempt < 12; ++attempt) {
    const std::uint32_t before = driver.connects;
    Millis waited{0};
    while (driver.connects == before) {
      driver.tick(Millis(10));
      waited += Millis(10);
    }
    REQUIRE(waited <= VolunteerDriver::tiny_config().retry_keeping + Millis(10));
    driver.handle(ConnectFailed{"connection refused"});
  }
}

TEST_CASE("rejoin: shards of a master that stays away are given up", "[volunteer]") {
  VolunteerDriver driver = holder();
  driver.handle(Disconnected{"reset"});
  const auto has_forgotten = [&driver] {
    return std::ranges::any_of(driver.work, [](const StartWork& work) {
      return std::holds_alternative<Forget>(work.work);
    });
  };
  const Instant end = driver.now() + VolunteerDriver::tiny_config().keep_alone;
  while (driver.now() < end) {
    REQUIRE_FALSE(has_forgotten());
    const std::uint32_t before = driver.connects;
    driver.tick(Millis(1'000));
    if (driver.connects != before) driver.handle(ConnectFailed{"connection refused"});
  }
  driver.tick(Millis(60'000));
  REQUIRE(has_forgotten());
  driver.handle(ConnectFailed{"connection refused"});
  REQUIRE(dial_again(driver).kept_shards == 0);
}

}  // namespace gleaner::volunteer

// Loading shards, and work in its order.
#include <catch2/catch.hpp>

#include "tests/support/volunteer_driver.hpp"
#include "tests/unit/volunteer/core/lease_messages.hpp"

namespace gleaner::volunteer {
namespace {

std::vector<Message> commits(std::uint32_t parts) {
  std::vector<Message> replies{UnitResult{}};
  for (std::uint32_t part = 0; part < parts; ++part) {
    ShardCommit commit{kLease, 0, part, parts, {}};
    commit.update.rows = {part};
    commit.update.scales = commit.update.states = {1.0F};
    commit.update.levels.resize(16);
    replies.emplace_back(std::move(commit));
  }
  return replies;
}

// A volunteer that may have two parts of commits on their way, at work.
VolunteerDriver with_two_parts() {
  VolunteerCoreConfig config = VolunteerDriver::tiny_config();
  config.commit_parts_in_flight = 2;
  VolunteerDriver driver(config);
  driver.join();
  driver.receive(grant(0, 0));
  driver.finish_work({ShardReady{kLease}});
  driver.take<ShardReady>();
  driver.receive(unit(1));
  return driver;
}

}  // namespace

TEST_CASE("loading: only N chunks are asked for at a time", "[volunteer]") {
  VolunteerDriver driver;
  driver.join();
  driver.receive(grant(6, 7));
  REQUIRE(requests(driver) == std::vector<std::uint32_t>{0, 1, 2, 3});
  REQUIRE(driver.snapshot().phase == Snapshot::Phase::kLoading);
  driver.receive(chunk(2));
  REQUIRE(requests(driver) == std::vector<std::uint32_t>{4});
  for (const std::uint32_t number : {0u, 1u, 3u, 4u}) driver.receive(chunk(number));
  REQUIRE(requests(driver) == std::vector<std::uint32_t>{5, 6});
}

TEST_CASE("loading: the executor gets the grant, then its chunks, and says when it is ready",
          "[volunteer]") {
  VolunteerDriver driver;
  driver.join();
  driver.receive(grant(2, 2));
  requests(driver);
  REQUIRE(under_way<LeaseGrant>(driver).lease == kLease);
  driver.receive(chunk(1));
  driver.receive(chunk(0));
  driver.finish_work();
  REQUIRE(under_way<ShardChunk>(driver).chunk == 1);
  driver.finish_work();
  REQUIRE(under_way<ShardChunk>(driver).chunk == 0);
  driver.finish_work({ShardReady{kLease}});
  REQUIRE(driver.take<ShardReady>().lease == kLease);
  REQUIRE(driver.snapshot().shards == std::vector{kShard});
  REQUIRE(driver.snapshot().loading == 0);
  REQUIRE(driver.snapshot().phase == Snapshot::Phase::kTraining);
}

TEST_CASE("loading: a chunk that was not asked for, or comes twice, ends the connection",
          "[volunteer]") {
  for (const std::uint32_t number : {5u, 9u, 0u}) {
    VolunteerDriver driver;
    driver.join();
    driver.receive(grant(6, 6));
    requests(driver);
    driver.receive(chunk(0));
    requests(driver);
    driver.receive(chunk(number));
    REQUIRE_THAT(driver.take<Goodbye>().sentence, Catch::Contains("unasked"));
    REQUIRE(driver.disconnects == 1);
  }
}

TEST_CASE("loading: chunks that wait for those of a lease are asked for when it is over",
          "[volunteer]") {
  VolunteerDriver driver;
  driver.join();
  driver.receive(grant(4, 4));
  requests(driver);
  const LeaseRef other{ShardId{raw(kShard) + 1}, LeaseEpoch{6}};
  driver.receive(grant(2, 2, other));
  REQUIRE(requests(driver).empty());
  driver.receive(Revoke{kLease});
  REQUIRE(driver.take<ChunkRequest>().lease == other);
  REQUIRE(driver.take<ChunkRequest>().lease == other);
}

TEST_CASE("loading: chunks of a lease that is over are ignored", "[volunteer]") {
  VolunteerDriver driver;
  driver.join();
  driver.receive(grant(2, 2));
  requests(driver);
  driver.receive(Revoke{kLease});
  driver.receive(chunk(0));
  const LeaseRef next{kShard, LeaseEpoch{6}};
  driver.receive(grant(2, 2, next));
  requests(driver);
  driver.receive(chunk(0));
  REQUIRE(driver.disconnects == 0);
  driver.finish_work();
  REQUIRE(under_way<Revoke>(driver).lease == kLease);
  driver.finish_work();
  REQUIRE(under_way<LeaseGrant>(driver).lease == next);
  driver.finish_work();
  REQUIRE(driver.work.empty());
}

TEST_CASE("loading: a lease that makes no sense ends the connection", "[volunteer]") {
  for (const auto& [base, all] : {std::pair{3u, 2u}, std::pair{0u, 1u << 23}}) {
    VolunteerDriver driver;
    driver.join();
    driver.receive(grant(base, all));
    REQUIRE(driver.take<Goodbye>().code == ErrorCode::kProtocol);
  }
}

TEST_CASE("loading: chunks of the same checkpoint survive a broken connection", "[volunteer]") {
  VolunteerDriver driver;
  driver.join();
  driver.receive(grant(3, 4));
  driver.receive(chunk(0));
  driver.receive(chunk(2));
  driver.receive(chunk(3));  // of a hand-over: worth nothing to the next lease
  reconnect(driver);
  const LeaseRef again{kShard, LeaseEpoch{50}};
  driver.receive(grant(3, 4, again));
  REQUIRE(requests(driver) == std::vector<std::uint32_t>{1, 3});
  REQUIRE(under_way<LeaseGrant>(driver).lease == again);
  driver.finish_work();
  // They come back under the new lease.
  REQUIRE(under_way<ShardChunk>(driver) == chunk(0, again));
  driver.finish_work();
  REQUIRE(under_way<ShardChunk>(driver) == chunk(2, again));
  // And survive once more, together with what came meanwhile.
  driver.receive(chunk(1, again));
  reconnect(driver);
  driver.receive(grant(3, 3, again));
  REQUIRE(requests(driver).empty());
}

TEST_CASE("loading: chunks of another checkpoint or of another run are dropped", "[volunteer]") {
  VolunteerDriver driver;
  driver.join();
  driver.receive(grant(2, 2));
  driver.receive(chunk(0));
  reconnect(driver);
  driver.receive(grant(2, 2, kLease, 2));
  REQUIRE(requests(driver) == std::vector<std::uint32_t>{0, 1});

  driver.receive(chunk(0));
  Welcome other = VolunteerDriver::welcome();
  ++other.model.seed;
  reconnect(driver, other);
  driver.receive(grant(2, 2, kLease, 2));
  REQUIRE(requests(driver) == std::vector<std::uint32_t>{0, 1});

  // The master has been started again, perhaps because what they are of was false.
  driver.receive(chunk(0));
  other.first_epoch = LeaseEpoch{raw(kLease.epoch) + 1};
  reconnect(driver, other);
  driver.receive(grant(2, 2, {kShard, other.first_epoch}, 2));
  REQUIRE(requests(driver) == std::vector<std::uint32_t>{0, 1});
}

TEST_CASE("loading: kept chunks do not outlive the checkpoint they are of", "[volunteer]") {
  VolunteerDriver driver;
  driver.join();
  driver.receive(grant(2, 2));
  driver.receive(chunk(0));
  reconnect(driver);
  // With two rounds open a shard may be lent two checkpoints later than another; with three, the
  // master has moved on for good.
  driver.receive(grant(0, 0, {ShardId{1}, LeaseEpoch{6}}, 3));
  driver.receive(grant(2, 2, {kShard, LeaseEpoch{7}}, 1));
  REQUIRE(requests(driver) == std::vector<std::uint32_t>{1});
  reconnect(driver);
  driver.receive(grant(0, 0, {ShardId{1}, LeaseEpoch{8}}, 4));
  driver.receive(grant(2, 2, {kShard, LeaseEpoch{9}}, 1));
  REQUIRE(requests(driver) == std::vector<std::uint32_t>{0, 1});
}

TEST_CASE("work: it runs one piece at a time in the order of arrival", "[volunteer]") {
  VolunteerDriver driver;
  driver.join();
  driver.receive(unit(1));
  driver.receive(EvalUnit{});
  driver.receive(ReleaseRequest{kLease});
  REQUIRE(under_way<TrainUnit>(driver).unit == UnitId{1});
  driver.finish_work({UnitResult{}, ShardCommit{}});
  under_way<EvalUnit>(driver);
  // Replies leave in the order in which the executor made them.
  driver.take<UnitResult>();
  driver.take<ShardCommit>();
  driver.finish_work({EvalResult{}});
  under_way<ReleaseRequest>(driver);
  driver.take<EvalResult>();
  driver.finish_work();
  REQUIRE(driver.work.empty());
  REQUIRE(driver.snapshot().units == 1);
}

TEST_CASE("work: results of an earlier connection never leave", "[volunteer]") {
  VolunteerDriver driver;
  driver.join();
  driver.receive(unit(1));
  driver.receive(unit(2));
  driver.handle(Disconnected{"reset"});
  driver.tick(Millis(1'000));
  driver.handle(Connected{});
  driver.take<Hello>();
  driver.receive(VolunteerDriver::welcome());
  // The executor is still at unit 1; unit 2 was forgotten with its connection.
  REQUIRE(under_way<TrainUnit>(driver).unit == UnitId{1});
  driver.finish_work({UnitResult{}});
  REQUIRE(driver.sent.empty());
  REQUIRE(driver.snapshot().units == 0);
  REQUIRE(std::holds_alternative<Reset>(driver.work.front().work));
  driver.finish_work();
  REQUIRE(driver.work.empty());
}

TEST_CASE("work: what cannot be done ends the connection, not the program", "[volunteer]") {
  VolunteerDriver driver;
  driver.join();
  driver.receive(unit(1));
  driver.receive(unit(2));
  const std::uint64_t generation = driver.work.front().generation;
  driver.work.clear();
  driver.handle(WorkDone{generation, {}, Error{ErrorCode::kResources, "out of memory"}});
  REQUIRE(driver.take<Goodbye>() == Goodbye{ErrorCode::kResources, "out of memory"});
  REQUIRE(driver.disconnects == 1);
  REQUIRE(driver.work.empty());
  REQUIRE_FALSE(driver.exit.has_value());
  REQUIRE_THAT(driver.snapshot().sentence, Catch::Contains("out of memory"));
}

TEST_CASE("work: one that ran out of memory offers half as much", "[volunteer]") {
  VolunteerCoreConfig config = VolunteerDriver::tiny_config();
  config.hello.memory_bytes = 1000;
  VolunteerDriver driver(config);
  driver.join();
  driver.receive(unit(1));
  driver.handle(WorkDone{driver.work.front().generation, {}, Error{ErrorCode::kResources, "no"}});
  driver.handle(Disconnected{"closed"});
  driver.sent.clear();
  driver.tick(Millis(1'000));
  driver.handle(Connected{});
  REQUIRE(driver.take<Hello>().memory_bytes == 500);
}

TEST_CASE("work: no memory for a message halves the offer as well", "[volunteer]") {
  VolunteerCoreConfig config = VolunteerDriver::tiny_config();
  config.hello.memory_bytes = 1000;
  VolunteerDriver driver(config);
  driver.join();
  driver.handle(Disconnected{"no memory", true});
  driver.sent.clear();
  driver.tick(Millis(1'000));
  driver.handle(Connected{});
  REQUIRE(driver.take<Hello>().memory_bytes == 500);
}

TEST_CASE("work: a master that floods it with work is left", "[volunteer]") {
  VolunteerDriver driver;
  driver.join();
  for (std::uint64_t i = 0; i <= 8192; ++i) driver.receive(unit(i));
  REQUIRE(driver.disconnects == 0);
  driver.receive(unit(9999));
  REQUIRE(driver.take<Goodbye>().code == ErrorCode::kBusy);
  REQUIRE(driver.disconnects == 1);
}

TEST_CASE("work: while many bytes of it wait nothing more is read, and no master called silent",
          "[volunteer]") {
  VolunteerCoreConfig config = VolunteerDriver::tiny_config();
  config.work_bytes_max = 100;
  VolunteerDriver driver(config);
  driver.join();
  driver.handle(MessageReceived{Message(unit(1)), 90});  // under way at once
  driver.handle(MessageReceived{Message(unit(2)), 60});
  REQUIRE(driver.core().wants_more());
  driver.handle(MessageReceived{Message(unit(3)), 60});
  REQUIRE_FALSE(driver.core().wants_more());
  for (int i = 0; i < 300; ++i) driver.tick(Millis(100));
  REQUIRE(driver.disconnects == 0);
  driver.finish_work();
  REQUIRE(driver.core().wants_more());
  for (int i = 0; i < 100; ++i) driver.tick(Millis(100));
  REQUIRE(driver.disconnects == 1);  // from now on it had to be heard
  REQUIRE(driver.core().wants_more());
}

TEST_CASE("work: the flood may come as chunks or as leases too", "[volunteer]") {
  VolunteerDriver driver;
  driver.join();
  driver.receive(grant(3, 3));
  requests(driver);
  for (std::uint64_t i = 0; i < 8192; ++i) driver.receive(unit(i));
  driver.receive(chunk(0));
  REQUIRE(driver.take<Goodbye>().code == ErrorCode::kBusy);
  REQUIRE(driver.sent.empty());
  REQUIRE(driver.snapshot().loading == 0);

  VolunteerDriver leased;
  leased.join();
  for (std::uint64_t i = 0; i <= 8192; ++i) leased.receive(unit(i));
  leased.receive(grant(3, 3));
  REQUIRE(leased.take<Goodbye>().code == ErrorCode::kBusy);
  REQUIRE(leased.sent.empty());
  REQUIRE(leased.snapshot().loading == 0);
}

TEST_CASE("commits: N parts are on their way, and each credit lets one follow", "[volunteer]") {
  VolunteerDriver driver = with_two_parts();
  driver.finish_work(commits(5));
  driver.take<UnitResult>();
  REQUIRE(driver.take<ShardCommit>().part == 0);
  REQUIRE(driver.take<ShardCommit>().part == 1);
  REQUIRE(driver.sent.empty());
  driver.receive(CommitCredit{1});
  REQUIRE(driver.take<ShardCommit>().part == 2);
  REQUIRE(driver.sent.empty());
  driver.receive(CommitCredit{2});
  REQUIRE(driver.take<ShardCommit>().part == 3);
  REQUIRE(driver.take<ShardCommit>().part == 4);
  driver.receive(CommitCredit{2});
  REQUIRE(driver.sent.empty());
}

TEST_CASE("commits: what follows in their lane waits with them, what is urgent does not",
          "[volunteer]") {
  VolunteerDriver driver = with_two_parts();
  driver.finish_work(commits(3));
  driver.sent.clear();
  driver.receive(unit(2));
  REQUIRE(driver.work.size() == 1);  // training goes on
  driver.finish_work({UnitResult{}});
  driver.take<UnitResult>();
  driver.receive(ReleaseRequest{kLease});
  driver.finish_work({HandOver{kLease, 0, 0, 0, 1, {}}});
  REQUIRE(driver.sent.empty());
  driver.receive(CommitCredit{1});
  REQUIRE(driver.take<ShardCommit>().part == 2);
  driver.take<HandOver>();
}

TEST_CASE("lanes: what they bring leaves beside work, and none begins while commits wait",
          "[volunteer]") {
  VolunteerDriver driver = with_two_parts();
  const std::uint64_t generation = driver.work.front().generation;
  REQUIRE(driver.core().may_begin_units());
  driver.handle(LaneDone{generation, commits(3), {}});
  REQUIRE(driver.work.size() == 1);  // still under way
  driver.take<UnitResult>();
  REQUIRE(driver.take<ShardCommit>().part == 0);
  REQUIRE(driver.take<ShardCommit>().part == 1);
  REQUIRE(driver.sent.empty());
  REQUIRE_FALSE(driver.core().may_begin_units());
  driver.receive(CommitCredit{1});
  REQUIRE(driver.take<ShardCommit>().part == 2);
  REQUIRE(driver.core().may_begin_units());
  // An earlier connection is over.
  driver.handle(LaneDone{generation - 1, commits(1), {}});
  driver.handle(LaneDone{generation - 1, {}, Error{ErrorCode::kProtocol, "no"}});
  REQUIRE(driver.sent.empty());
  driver.handle(LaneDone{generation, {}, Error{ErrorCode::kProtocol, "no"}});
  REQUIRE(driver.take<Goodbye>().sentence == "no");
  REQUIRE_FALSE(driver.core().may_begin_units());
}

TEST_CASE("commits: credit that nothing was sent for ends the connection", "[volunteer]") {
  VolunteerDriver driver = with_two_parts();
  driver.finish_work(commits(1));
  driver.sent.clear();
  driver.receive(CommitCredit{2});
  REQUIRE_THAT(driver.take<Goodbye>().sentence, Catch::Contains("credit for 2 parts"));
  REQUIRE(driver.disconnects == 1);
}

TEST_CASE("commits: what waited is forgotten with its connection", "[volunteer]") {
  VolunteerDriver driver = with_two_parts();
  driver.finish_work(commits(5));
  reconnect(driver);
  driver.sent.clear();
  driver.receive(grant(0, 0));
  driver.finish_work({ShardReady{kLease}});
  driver.receive(unit(1));
  driver.finish_work(commits(2));
  driver.take<ShardReady>();
  driver.take<UnitResult>();
  REQUIRE(driver.take<ShardCommit>().part == 0);
  REQUIRE(driver.take<ShardCommit>().part == 1);
}

TEST_CASE("work: a shard given back is no longer shown as held", "[volunteer]") {
  VolunteerDriver driver;
  driver.join();
  driver.receive(grant(0, 0));
  driver.finish_work({ShardReady{kLease}});
  REQUIRE(driver.snapshot().shards.size() == 1);
  driver.receive(ReleaseRequest{kLease});
  REQUIRE(driver.snapshot().shards.size() == 1);  // still in its hands
  driver.finish_work({HandOver{kLease, 0, 0, 0, 1, {}}});
  REQUIRE(driver.snapshot().shards.empty());
}

}  // namespace gleaner::volunteer

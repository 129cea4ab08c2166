// Shard-rounds in the executor: their order, what they wait for, what stops them, and lanes.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <map>
#include <mutex>
#include <thread>

#include "tests/support/replies.hpp"
#include "tests/support/watched_memory.hpp"
#include "tests/support/wide_run.hpp"
#include "volunteer/executor.hpp"

namespace gleaner::volunteer {
namespace {

constexpr std::uint64_t kMuch = std::uint64_t{1} << 30;

// Notes the replies by shard, without what differs from one machine to the next.
void add_to(std::map<ShardId, std::vector<Message>>& told, std::vector<Message> replies) {
  for (Message& reply : replies) {
    if (auto* result = std::get_if<UnitResult>(&reply)) {
      result->compute_us = 0;
      told[result->batches.at(0).shards.at(0).shard].push_back(*result);
    } else if (const auto* commit = std::get_if<ShardCommit>(&reply)) {
      told[commit->lease.shard].emplace_back(*commit);
    } else if (auto* scores = std::get_if<EvalResult>(&reply)) {
      scores->compute_us = 0;
      told[ShardId{static_cast<std::uint32_t>(raw(scores->unit) % 1'000'000)}].push_back(*scores);
    }
  }
}

bool is_same(const Message& a, const Message& b) {
  if (a.index() != b.index()) return false;
  if (const auto* result = std::get_if<UnitResult>(&a)) return *result == std::get<UnitResult>(b);
  if (const auto* commit = std::get_if<ShardCommit>(&a)) {
    return *commit == std::get<ShardCommit>(b);
  }
  return std::get<EvalResult>(a) == std::get<EvalResult>(b);
}

void require_same(const std::map<ShardId, std::vector<Message>>& a,
                  const std::map<ShardId, std::vector<Message>>& b) {
  REQUIRE(a.size() == b.size());
  for (const auto& [shard, messages] : a) {
    const auto& others = b.at(shard);
    REQUIRE(messages.size() == others.size());
    for (std::size_t i = 0; i < messages.size(); ++i) REQUIRE(is_same(messages[i], others[i]));
  }
}

// An executor that has some shards, and the master's side of that. Its thread is the only lane.
struct WideBench {
  explicit WideBench(unsigned threads = 1, ExampleStoreOptions points = {},
                     std::uint64_t memory_bytes = kMuch)
      : pool(threads), executor(pool, memory_bytes, std::move(points)) {
    reset();
  }

  void reset() { REQUIRE(executor.execute(Reset{run.model, {}, 5, ++generation}).ok()); }

  std::vector<Message> done(const Message& message) {
    auto replies = executor.execute_all(Work(message));
    if (!replies) FAIL(replies.error().message);
    return std::move(replies).value();
  }

  Error refused(const Message& message) {
    const auto replies = executor.execute_all(Work(message));
    REQUIRE_FALSE(replies.ok());
    return replies.error();
  }

  LeaseRef load(std::uint32_t shard, std::uint64_t epoch = 1) {
    const LeaseGrant grant = run.grant(shard, epoch);
    REQUIRE(done(grant).empty());
    REQUIRE(of_type<ShardReady>(done(run.chunk(grant.lease))).size() == 1);
    return grant.lease;
  }

  // All replies but requests for points, which are answered.
  std::vector<Message> done_with_points(const Message& message) {
    return replies_with_points(
        message, [this](const Message& next) { return done(next); },
        [this](const PointsRequest& request) { return run.points(request); });
  }

  // Takes units in, for lanes to perform.
  void give(const Message& message) {
    auto replies = executor.execute(Work(message));
    REQUIRE(replies.ok());
    for (const PointsRequest& request : of_type<PointsRequest>(*replies)) give(run.points(request));
  }

  WideRun run;
  RunPlan plan{run.model};
  ThreadPool pool;
  Executor executor;
  std::uint64_t generation = 0;
};

// Performs units on some threads until it ends or all is done.
struct Lanes {
  Lanes(WideBench& of, unsigned threads) : bench(of) {
    for (unsigned i = 0; i < threads; ++i) lanes.emplace_back([this] { work(); });
  }

  ~Lanes() { end(); }

  void work() {
    const auto deliver = [this](Executor::Ran ran) {
      const std::lock_guard lock(mutex);
      failed = failed || !ran.replies;
      if (!ran.replies) return;
      for (const PointsRequest& request : of_type<PointsRequest>(*ran.replies)) {
        requests.push_back(request);
      }
      std::erase_if(*ran.replies, [](const Message& reply) {
        return std::holds_alternative<PointsRequest>(reply);
      });
      generations.push_back(ran.generation);
      said += ran.replies->size();
      add_to(told, std::move(*ran.replies));
    };
    while (!is_ending) {
      const std::uint32_t seen = bench.executor.changes();
      if (!bench.executor.run_next(deliver) && !is_ending) bench.executor.wait_for_change(seen);
    }
  }

  // Answers requests until `is_over`.
  template <typename IsOver>
  void answer_until(const IsOver& is_over) {
    while (!is_over()) {
      std::vector<PointsRequest> open;
      {
        const std::lock_guard lock(mutex);
        REQUIRE_FALSE(failed);
        open.swap(requests);
      }
      for (const PointsRequest& request : open) bench.give(bench.run.points(request));
      std::this_thread::yield();
    }
  }

  // Until `count` messages have been said.
  void wait_for(std::size_t count) {
    answer_until([&] {
      const std::lock_guard lock(mutex);
      return said >= count;
    });
  }

  // Until a lane has a unit. A lane may have asked for examples just before it had none.
  void wait_until_busy() {
    answer_until([&] { return bench.executor.is_busy(); });
  }

  void end() {
    is_ending = true;
    bench.executor.let_begin(false);
    for (std::thread& lane : lanes) lane.join();
    lanes.clear();
    bench.executor.let_begin(true);
  }

  WideBench& bench;
  std::mutex mutex;
  std::map<ShardId, std::vector<Message>> told;
  std::vector<PointsRequest> requests;
  std::vector<std::uint64_t> generations;
  std::size_t said = 0;
  std::atomic<bool> failed{false};
  std::atomic<bool> is_ending{false};
  std::vector<std::thread> lanes;
};

}  // namespace

TEST_CASE("wide work: a shard-round waits for its examples, and asks ahead through the round",
          "[wide_work]") {
  WideBench bench;
  const LeaseRef lease = bench.load(1);
  const auto requests = of_type<PointsRequest>(bench.done(bench.run.unit(lease, 0)));
  std::vector<std::uint64_t> asked;
  for (const PointsRequest& request : requests) {
    REQUIRE(request.set == PointSet::kTraining);
    asked.insert(asked.end(), request.points.begin(), request.points.end());
  }
  std::vector<std::uint64_t> expected;
  for (BatchIndex batch = 0; batch < bench.plan.round_end(0); ++batch) {
    for (const std::uint64_t point : bench.plan.points_of(batch)) expected.push_back(point);
  }
  std::ranges::sort(asked);
  std::ranges::sort(expected);
  REQUIRE(asked == expected);
  // The first batch alone begins the unit, the last ends it.
  for (std::size_t i = 0; i + 1 < requests.size(); ++i) {
    REQUIRE(bench.done(bench.run.points(requests[i])).empty());
  }
  const auto replies = bench.done(bench.run.points(requests.back()));
  REQUIRE(replies.size() == 2);
  const auto& result = std::get<UnitResult>(replies[0]);
  REQUIRE(result.unit == bench.run.unit(lease, 0).unit);
  REQUIRE(result.compute_us > 0);
  REQUIRE(result.batches.size() == 2);
  REQUIRE(std::get<ShardCommit>(replies[1]).lease == lease);
  REQUIRE(std::get<ShardCommit>(replies[1]).round == 0);
}

TEST_CASE("wide work: an evaluation comes between the rounds around it", "[wide_work]") {
  WideBench bench;
  const LeaseRef lease = bench.load(1);
  bench.give(bench.run.unit(lease, 0));
  bench.give(bench.run.evaluation(lease, 2, 3));
  const auto replies = bench.done_with_points(bench.run.unit(lease, 1));
  REQUIRE(replies.size() == 5);
  REQUIRE(std::holds_alternative<UnitResult>(replies[0]));
  REQUIRE(std::holds_alternative<ShardCommit>(replies[1]));
  REQUIRE(std::get<EvalResult>(replies[2]).best.size() == 9);
  REQUIRE(std::get<UnitResult>(replies[3]).unit == bench.run.unit(lease, 1).unit);

  WideBench apart;
  (void)apart.load(1);
  (void)apart.done_with_points(bench.run.unit(lease, 0));
  const auto scored = apart.done_with_points(bench.run.evaluation(lease, 2, 3));
  REQUIRE(std::get<EvalResult>(scored.at(0)).best == std::get<EvalResult>(replies[2]).best);
}

TEST_CASE("wide work: data sets of this process need not be sent, and give the same",
          "[wide_work]") {
  WideBench asking;
  LeaseRef lease = asking.load(2);
  std::map<ShardId, std::vector<Message>> expected;
  add_to(expected, asking.done_with_points(asking.run.unit(lease, 0)));
  ExampleStoreOptions points;
  const WideRun run;
  points.own = {run.train.get(), run.train.get()};
  WideBench bench(1, points);
  lease = bench.load(2);
  std::map<ShardId, std::vector<Message>> told;
  add_to(told, bench.done(run.unit(lease, 0)));
  require_same(told, expected);
  REQUIRE(of_type<EvalResult>(bench.done(run.evaluation(lease, 0, 4))).size() == 1);
}

TEST_CASE("wide work: units without room for examples are done all the same", "[wide_work]") {
  WideBench roomy;
  LeaseRef lease = roomy.load(2);
  std::map<ShardId, std::vector<Message>> expected;
  add_to(expected, roomy.done_with_points(roomy.run.unit(lease, 0)));
  WideBench bench(1, {"", 0, 0, {}}, 1 << 22);
  lease = bench.load(2);
  std::map<ShardId, std::vector<Message>> told;
  add_to(told, bench.done_with_points(bench.run.unit(lease, 0)));
  require_same(told, expected);
}

TEST_CASE("wide work: a shard that is asked back is handed over where it stands", "[wide_work]") {
  WideBench bench;
  LeaseRef lease = bench.load(0);
  auto replies = bench.done(ReleaseRequest{lease});
  REQUIRE(replies.size() == 1);
  REQUIRE(std::get<HandOver>(replies[0]) == HandOver{lease, 0, 0, 0, 1, {}});
  REQUIRE(bench.refused(ReleaseRequest{lease}).code == ErrorCode::kStaleLease);

  // A unit that has begun is finished; the next is dropped.
  bench.reset();
  lease = bench.load(0);
  auto requests = of_type<PointsRequest>(bench.done(bench.run.unit(lease, 0)));
  bench.done(bench.run.unit(lease, 1));
  bench.done(bench.run.points(requests[0]));
  REQUIRE(bench.done(ReleaseRequest{lease}).empty());
  std::vector<Message> said;
  for (std::size_t i = 1; i < requests.size(); ++i) {
    for (Message& reply : bench.done(bench.run.points(requests[i]))) said.push_back(reply);
  }
  REQUIRE(said.size() == 3);
  REQUIRE(std::holds_alternative<UnitResult>(said[0]));
  REQUIRE(std::holds_alternative<ShardCommit>(said[1]));
  REQUIRE(std::get<HandOver>(said[2]) == HandOver{lease, 1, bench.plan.round_begin(1), 0, 1, {}});

  // Units that have not begun are dropped.
  bench.reset();
  lease = bench.load(0);
  bench.executor.let_begin(false);
  bench.done(bench.run.unit(lease, 0));
  replies = bench.done(ReleaseRequest{lease});
  REQUIRE(replies.size() == 1);
  REQUIRE(std::get<HandOver>(replies[0]).next_batch == 0);
}

TEST_CASE("wide work: a revoked shard says nothing more, and can be lent again", "[wide_work]") {
  WideBench bench;
  LeaseRef lease = bench.load(0);
  const auto requests = of_type<PointsRequest>(bench.done(bench.run.unit(lease, 0)));
  bench.done(bench.run.unit(lease, 1));
  bench.done(bench.run.points(requests[0]));  // it has begun
  REQUIRE(bench.done(Revoke{lease}).empty());
  for (std::size_t i = 1; i < requests.size(); ++i) {
    REQUIRE(bench.done(bench.run.points(requests[i])).empty());
  }
  REQUIRE(bench.refused(bench.run.unit(lease, 0)).code == ErrorCode::kStaleLease);
  lease = bench.load(0, 7);
  bench.done(Revoke{{ShardId{0}, LeaseEpoch{6}}});  // late
  REQUIRE(bench.done_with_points(bench.run.unit(lease, 0)).size() == 2);
}

TEST_CASE("wide work: what does not fit is refused", "[wide_work]") {
  WideBench bench;
  const LeaseRef lease = bench.load(0);
  REQUIRE(bench.refused(InputUnit{}).code == ErrorCode::kProtocol);
  REQUIRE(bench.refused(bench.run.unit({ShardId{1}, LeaseEpoch{1}}, 0)).code ==
          ErrorCode::kStaleLease);
  (void)bench.done_with_points(bench.run.unit(lease, 0));
  // The shard stands behind round 0.
  const auto refused = bench.refused(bench.run.unit(lease, 0));
  REQUIRE(refused.code == ErrorCode::kProtocol);
  REQUIRE_THAT(refused.message, Catch::Contains("stands before batch 5"));
}

TEST_CASE("wide work: a reset steps shards back from where their lanes were", "[wide_work]") {
  WideBench bench;
  LeaseRef lease = bench.load(0);
  std::map<ShardId, std::vector<Message>> expected;
  add_to(expected, bench.done_with_points(bench.run.unit(lease, 0)));
  add_to(expected, bench.done_with_points(bench.run.unit(lease, 1)));
  const auto requests = of_type<PointsRequest>(bench.done(bench.run.unit(lease, 2)));
  if (!requests.empty()) bench.done(bench.run.points(requests[0]));
  const auto replies = bench.executor.execute(Reset{bench.run.model, RoundIndex{0}, 5, 2}).value();
  const auto& offer = std::get<ShardOffer>(replies.at(0));
  REQUIRE(offer.shards.size() == 1);
  LeaseGrant held;
  held.lease = {ShardId{0}, LeaseEpoch{9}};
  held.is_held = true;
  REQUIRE(bench.done(held).size() == 1);
  std::map<ShardId, std::vector<Message>> told;
  for (RoundIndex round = 0; round < 2; ++round) {
    for (Message& reply : bench.done_with_points(bench.run.unit(held.lease, round))) {
      if (auto* commit = std::get_if<ShardCommit>(&reply)) commit->lease = lease;
      add_to(told, {reply});
    }
  }
  require_same(told, expected);
}

TEST_CASE("wide work: where memory ends, shards and units are given up", "[wide_work]") {
  WideBench bench;
  const LeaseRef lease = bench.load(0);
  bench.give(bench.run.unit(lease, 0));
  {
    const test::ScarceMemory scarce(1 << 10);
    ErrorCode code{};
    REQUIRE(bench.executor.run_next([&](const Executor::Ran& ran) {
      if (!ran.replies) code = ran.replies.error().code;
    }));
    REQUIRE(code == ErrorCode::kResources);
  }
  REQUIRE(bench.executor.held_bytes() == 0);
  bench.reset();
  bench.load(0);
}

TEST_CASE("wide work: any number of lanes gives what one gives, shard by shard", "[wide_work]") {
  const auto told_by = [](unsigned threads) {
    WideBench bench(threads);
    std::vector<LeaseRef> leases;
    for (std::uint32_t shard = 0; shard < 4; ++shard) leases.push_back(bench.load(shard));
    Lanes lanes(bench, threads);
    for (RoundIndex round = 0; round < 4; ++round) {
      for (const LeaseRef& lease : leases) {
        bench.give(bench.run.unit(lease, round));
        bench.give(bench.run.evaluation(lease, round, 4));
      }
    }
    lanes.wait_for(4 * 4 * 3);
    lanes.end();
    return std::move(lanes.told);
  };
  const auto expected = told_by(1);
  require_same(told_by(2), expected);
  require_same(told_by(4), expected);
}

TEST_CASE("wide work: lanes stop for a revocation, a pause and a reset", "[wide_work]") {
  WideBench bench(2);
  std::vector<LeaseRef> leases;
  for (std::uint32_t shard = 0; shard < 4; ++shard) leases.push_back(bench.load(shard));
  bench.pool.gate().close();
  Lanes lanes(bench, 2);
  for (const LeaseRef& lease : leases) bench.give(bench.run.unit(lease, 0));
  // Both lanes wait at the gate.
  lanes.wait_until_busy();
  bench.give(Revoke{leases[0]});
  {
    const std::lock_guard lock(lanes.mutex);
    REQUIRE(lanes.said == 0);
  }
  bench.pool.gate().open();
  lanes.wait_for(3 * 2);
  {
    const std::lock_guard lock(lanes.mutex);
    REQUIRE_FALSE(lanes.told.contains(ShardId{0}));
  }
  // A reset while the gate is closed ends what is under way, and steps it back.
  bench.pool.gate().close();
  for (std::uint32_t shard = 1; shard < 4; ++shard) bench.give(bench.run.unit(leases[shard], 1));
  lanes.wait_until_busy();
  const auto replies = bench.executor.execute(Reset{bench.run.model, RoundIndex{1}, 5, 77}).value();
  REQUIRE(std::get<ShardOffer>(replies.at(0)).shards.size() == 3);
  REQUIRE_FALSE(bench.executor.is_busy());
  bench.pool.gate().open();
  LeaseGrant held;
  held.lease = {ShardId{2}, LeaseEpoch{9}};
  held.base_round = 1;
  held.next_batch = bench.plan.round_begin(1);
  held.is_held = true;
  bench.give(held);
  bench.give(bench.run.unit(held.lease, 1));
  lanes.wait_for(4 * 2);
  lanes.end();
  REQUIRE(lanes.generations.back() == 77);

  WideBench alone;
  const LeaseRef lease = alone.load(2);
  (void)alone.done_with_points(alone.run.unit(lease, 0));
  std::map<ShardId, std::vector<Message>> expected;
  add_to(expected, alone.done_with_points(alone.run.unit(lease, 1)));
  const auto& told = lanes.told.at(ShardId{2});
  REQUIRE(is_same(told.at(2), expected.at(ShardId{2}).at(0)));
}

}  // namespace gleaner::volunteer

#include "volunteer/executor.hpp"

#include <catch2/catch.hpp>

#include "tests/support/tiny_run.hpp"
#include "tests/support/watched_memory.hpp"

namespace gleaner::volunteer {
namespace {

constexpr LeaseRef kLease{ShardId{1}, LeaseEpoch{3}};

// An executor made ready for the tiny run.
struct Bench {
  explicit Bench(std::uint64_t memory_bytes = std::uint64_t{1} << 30,
                 const ModelConfig& config = tiny_model())
      : model(config), plan(model), map(model), pool(1), executor(pool, memory_bytes) {
    REQUIRE(executor.execute(Reset{model}).ok());
  }

  Result<std::vector<Message>> run(Message message) {
    return executor.execute(Work(std::move(message)));
  }

  std::vector<Message> done(Message message) {
    auto replies = run(std::move(message));
    if (!replies) FAIL(replies.error().message);
    return std::move(replies).value();
  }

  [[nodiscard]] LeaseGrant grant(LeaseRef lease = kLease) const {
    LeaseGrant message;
    message.lease = lease;
    message.label_counts.resize(map.neurons(lease.shard).size(), 1);
    return message;
  }

  // Two empty chunks: all rows as they were in the beginning.
  [[nodiscard]] LeaseGrant grant_with_chunks() const {
    LeaseGrant message = grant();
    message.base_round = 1;
    message.next_batch = plan.round_begin(1);
    message.base_chunks = message.chunks = 2;
    return message;
  }

  [[nodiscard]] TrainUnit unit(BatchIndex first, BatchIndex end, LeaseRef lease = kLease) const {
    TrainUnit message;
    message.unit = UnitId{9};
    message.leases = {lease};
    for (BatchIndex batch = first; batch < end; ++batch) {
      const QuantizedActivations codes = tiny_codes(plan, batch, model.hidden);
      Positives none;
      none.offsets.resize(codes.examples + 1);
      message.batches.push_back(
          {batch, std::make_shared<const Bytes>(pack(codes)), none, plan.rates(batch).output});
    }
    return message;
  }

  ModelConfig model;
  RunPlan plan;
  ShardMap map;
  ThreadPool pool;
  Executor executor;
};

}  // namespace

TEST_CASE("executor: what it forgets takes no memory, and a reset begins again", "[executor]") {
  Bench bench;
  bench.done(bench.grant());
  REQUIRE(bench.executor.held_bytes() > 0);
  REQUIRE(bench.executor.execute(Forget{}).value().empty());
  REQUIRE(bench.executor.held_bytes() == 0);
  REQUIRE(bench.executor.execute(Reset{bench.model}).value().empty());
  REQUIRE(bench.done(bench.grant()).size() == 1);
}

TEST_CASE("executor: a lease without chunks is ready at once", "[executor]") {
  Bench bench;
  const auto replies = bench.done(bench.grant());
  REQUIRE(replies.size() == 1);
  REQUIRE(std::get<ShardReady>(replies[0]).lease == kLease);
}

TEST_CASE("executor: a shard is ready with its last chunk, in any order", "[executor]") {
  Bench bench;
  REQUIRE(bench.done(bench.grant_with_chunks()).empty());
  REQUIRE(bench.done(ShardChunk{kLease, 1, {}}).empty());
  const auto replies = bench.done(ShardChunk{kLease, 0, {}});
  REQUIRE(replies.size() == 1);
  REQUIRE(std::get<ShardReady>(replies[0]).lease == kLease);
}

TEST_CASE("executor: chunks of a revoked lease are ignored", "[executor]") {
  Bench bench;
  bench.done(bench.grant_with_chunks());
  REQUIRE(bench.done(Revoke{kLease}).empty());
  REQUIRE(bench.done(ShardChunk{kLease, 0, {}}).empty());
  REQUIRE(bench.done(ShardChunk{kLease, 1, {}}).empty());
}

TEST_CASE("executor: a unit's result leaves before the commits it leads to", "[executor]") {
  Bench bench;
  bench.done(bench.grant());
  REQUIRE(bench.done(bench.unit(0, 2)).size() == 1);  // the round is not over
  const auto replies = bench.done(bench.unit(2, 4));
  REQUIRE(replies.size() >= 2);
  const auto& result = std::get<UnitResult>(replies[0]);
  REQUIRE(result.unit == UnitId{9});
  REQUIRE(result.compute_us > 0);
  REQUIRE(result.batches.size() == 2);
  for (std::size_t i = 1; i < replies.size(); ++i) {
    REQUIRE(std::get<ShardCommit>(replies[i]).round == 0);
    REQUIRE(std::get<ShardCommit>(replies[i]).lease == kLease);
  }
}

TEST_CASE("executor: a shard handed over is gone", "[executor]") {
  Bench bench;
  bench.done(bench.grant());
  bench.done(bench.unit(0, 2));
  const auto replies = bench.done(ReleaseRequest{kLease});
  REQUIRE_FALSE(replies.empty());
  const auto& part = std::get<HandOver>(replies[0]);
  REQUIRE(part.next_batch == 2);
  REQUIRE(part.base_round == 0);
  REQUIRE_FALSE(bench.run(bench.unit(2, 3)).ok());
}

TEST_CASE("executor: a hand-over continues elsewhere to the same results", "[executor]") {
  Bench whole;
  whole.done(whole.grant());
  whole.done(whole.unit(0, 2));
  auto straight = whole.done(whole.unit(2, 3));

  Bench first;
  first.done(first.grant());
  first.done(first.unit(0, 2));
  const auto parts = first.done(ReleaseRequest{kLease});
  Bench second;
  LeaseGrant grant = second.grant();
  grant.next_batch = 2;
  grant.chunks = static_cast<std::uint32_t>(parts.size());
  second.done(grant);
  for (std::uint32_t i = 0; i < parts.size(); ++i) {
    second.done(ShardChunk{kLease, i, std::get<HandOver>(parts[i]).rows});
  }
  auto moved = second.done(second.unit(2, 3));
  REQUIRE(moved.size() == straight.size());
  auto& a = std::get<UnitResult>(straight[0]);
  auto& b = std::get<UnitResult>(moved[0]);
  REQUIRE(a.batches == b.batches);
  for (std::size_t i = 1; i < moved.size(); ++i) {
    REQUIRE(std::get<ShardCommit>(moved[i]) == std::get<ShardCommit>(straight[i]));
  }
}

TEST_CASE("executor: a lease beyond the memory limit is refused with both figures", "[executor]") {
  const std::uint64_t one = ShardTrainer::shard_bytes(tiny_model());
  Bench bench(one);
  const auto first = bench.run(bench.grant());
  REQUIRE(first.ok());
  const auto second = bench.run(bench.grant({ShardId{2}, LeaseEpoch{4}}));
  REQUIRE_FALSE(second.ok());
  REQUIRE(second.error().code == ErrorCode::kResources);
  REQUIRE_THAT(second.error().message, Catch::Contains("shard 2 does not fit"));
}

TEST_CASE("executor: where memory ends, what is held is given up in words", "[executor]") {
  ModelConfig model = tiny_model();
  model.hidden = 4096;  // a shard's weights are the largest piece
  Bench bench(std::uint64_t{1} << 40, model);
  bench.done(bench.grant());
  REQUIRE(bench.executor.held_bytes() > 0);
  {
    const test::ScarceMemory scarce(3 * 4096 * sizeof(float));
    const auto failed = bench.run(bench.grant({ShardId{2}, LeaseEpoch{4}}));
    REQUIRE_FALSE(failed.ok());
    REQUIRE(failed.error().code == ErrorCode::kResources);
    REQUIRE_THAT(failed.error().message, Catch::Contains("less memory than --memory promises"));
  }
  REQUIRE(bench.executor.held_bytes() == 0);
  REQUIRE(bench.executor.execute(Reset{bench.model}).ok());
  bench.done(bench.grant());
}

TEST_CASE("executor: work that does not fit what is here is an error, not a crash", "[executor]") {
  Bench bench;
  REQUIRE_FALSE(bench.run(bench.unit(0, 1)).ok());  // not held
  REQUIRE_FALSE(bench.run(ReleaseRequest{kLease}).ok());
  bench.done(bench.grant());
  REQUIRE_FALSE(bench.run(bench.unit(1, 2)).ok());  // not where the shard stands
  const auto no_work = bench.run(Welcome{});
  REQUIRE(no_work.error().code == ErrorCode::kProtocol);
  REQUIRE(bench.done(bench.unit(0, 1)).size() == 1);  // a refusal changed nothing
}

TEST_CASE("executor: a reset forgets every shard", "[executor]") {
  Bench bench;
  bench.done(bench.grant());
  REQUIRE(bench.executor.execute(Reset{bench.model}).ok());
  REQUIRE_FALSE(bench.run(bench.unit(0, 1)).ok());
}

TEST_CASE(
    "executor: a reset for the same run keeps shards that can be stepped back, and offers them",
    "[executor]") {
  Bench bench;
  bench.done(bench.grant());
  bench.done(bench.grant({ShardId{2}, LeaseEpoch{4}}));
  bench.done(bench.unit(0, 3));  // shard 1 commits round 0
  bench.done(bench.unit(3, 4));
  bench.done(bench.grant({ShardId{3}, LeaseEpoch{5}}));
  bench.done(ReleaseRequest{LeaseRef{ShardId{3}, LeaseEpoch{5}}});
  const auto replies = bench.executor.execute(Reset{bench.model, RoundIndex{1}});
  REQUIRE(replies.ok());
  REQUIRE(replies->size() == 1);
  // Shard 2 has never left checkpoint 0.
  const auto& offer = std::get<ShardOffer>((*replies)[0]);
  REQUIRE(offer.checkpoint == 1);
  REQUIRE(offer.shards.size() == 1);
  REQUIRE(offer.shards[0].lease == kLease);
  REQUIRE(offer.shards[0].digest.rows > 0);
  REQUIRE_FALSE(bench.run(bench.unit(3, 4)).ok());

  LeaseGrant held;
  held.lease = {ShardId{1}, LeaseEpoch{9}};
  held.base_round = 1;
  held.next_batch = bench.plan.round_begin(1);
  held.is_held = true;
  const auto ready = bench.done(held);
  REQUIRE(ready.size() == 1);
  REQUIRE(std::get<ShardReady>(ready[0]).lease == held.lease);
  REQUIRE(bench.done(bench.unit(3, 4, held.lease)).size() == 1);
}

TEST_CASE("executor: a reset for another run offers nothing and keeps nothing", "[executor]") {
  Bench bench;
  bench.done(bench.grant());
  ModelConfig other = bench.model;
  ++other.seed;
  const auto replies = bench.executor.execute(Reset{other, RoundIndex{0}});
  REQUIRE(replies.ok());
  REQUIRE(std::get<ShardOffer>((*replies)[0]).shards.empty());
  // Nor does an executor that has never had a run.
  Executor fresh(bench.pool, 1 << 30);
  REQUIRE(
      std::get<ShardOffer>(fresh.execute(Reset{other, RoundIndex{0}}).value()[0]).shards.empty());
}

TEST_CASE("executor: a held lease of a shard it does not have is an error", "[executor]") {
  Bench bench;
  LeaseGrant held = bench.grant();
  held.is_held = true;
  held.label_counts.clear();
  REQUIRE(bench.run(held).error().code == ErrorCode::kStaleLease);
}

#if defined(__x86_64__)
TEST_CASE(
    "executor: a unit's bits survive a library that flushes subnormals once; twice is refused",
    "[executor]") {
  const auto train_first = [](Bench& bench) { return bench.run(bench.unit(0, 4)); };
  Bench sound;
  sound.done(sound.grant());
  const auto expected = train_first(sound);
  Bench bench;
  bench.done(bench.grant());
  write_float_state(sound_float_state() | 0x8040);
  const auto replies = train_first(bench);
  REQUIRE(replies.ok());
  REQUIRE(replies->size() == expected->size());
  const auto& result = std::get<UnitResult>(replies->at(0));
  REQUIRE(result.batches == std::get<UnitResult>(expected->at(0)).batches);
  REQUIRE(std::get<ShardCommit>(replies->back()) == std::get<ShardCommit>(expected->back()));
  write_float_state(sound_float_state() | 0x8040);
  const auto refused = bench.run(bench.unit(4, 5));
  REQUIRE(read_float_state() == sound_float_state());
  REQUIRE(refused.error().code == ErrorCode::kFault);
  REQUIRE_THAT(refused.error().message, Catch::Contains("MXCSR is 0x9fc0"));
}
#endif

TEST_CASE("executor: a shard scores what it is asked", "[executor]") {
  Bench bench;
  bench.done(bench.grant());
  EvalUnit unit;
  unit.unit = UnitId{4};
  unit.leases = {kLease};
  unit.top_k = 2;
  unit.hidden = std::make_shared<const Bytes>(pack(tiny_codes(bench.plan, 0, bench.model.hidden)));
  const auto replies = bench.done(unit);
  REQUIRE(replies.size() == 1);
  const auto& result = std::get<EvalResult>(replies[0]);
  REQUIRE(result.top_k == 2);
  REQUIRE(result.compute_us > 0);
  REQUIRE(result.best.size() == 4);  // two examples
}

}  // namespace gleaner::volunteer

// Loading, hand-over and dropping of shards.
#include <catch2/catch.hpp>
#include <cmath>

#include "common/train/kernels.hpp"
#include "tests/unit/common/train/shard_holder.hpp"

namespace gleaner {
namespace {

using test::Holder;
using test::lease_of;
using test::load;
using test::make_unit;
using test::small_config;
using test::StoredShard;
using test::train_ok;

void require_refused(const Result<void>& result, const std::string& words) {
  REQUIRE_FALSE(result.ok());
  REQUIRE(result.error().code == ErrorCode::kProtocol);
  REQUIRE_THAT(result.error().message, Catch::Matchers::Contains(words));
}

}  // namespace

TEST_CASE("hand-over: another trainer goes on to the same bits, wherever it happens", "[loading]") {
  for (const Sampling sampling : {Sampling::kLsh, Sampling::kAll}) {
    ModelConfig config = small_config();
    config.sampling = sampling;
    config.rehash_batches = 3;  // leaves stale and fresh codes among the touched rows
    config.active_cap = 20;
    Holder reference(config);
    std::vector<ShardTrainer::UnitOutcome> expected;
    for (BatchIndex batch = 0; batch < 14; ++batch) {
      expected.push_back(
          train_ok(reference.trainer, make_unit(config, {reference.lease}, batch, 1)));
    }
    bool mixed_staleness = false;
    for (BatchIndex at = 0; at < 14; ++at) {
      Holder first(config);
      first.train(0, at);
      auto parts = first.trainer.hand_over(first.lease);
      REQUIRE(parts.ok());
      REQUIRE_FALSE(parts->empty());
      REQUIRE(first.trainer.leases().empty());
      const RunPlan plan(config);
      for (std::size_t i = 0; i < parts->size(); ++i) {
        REQUIRE((*parts)[i].base_round == plan.round_of(at));
        REQUIRE((*parts)[i].next_batch == at);
        REQUIRE((*parts)[i].part == i);
        REQUIRE((*parts)[i].parts == parts->size());
        const auto& stale = (*parts)[i].rows.stale_codes;
        mixed_staleness |= std::count(stale.begin(), stale.end(), 0) > 0 &&
                           std::count(stale.begin(), stale.end(), 1) > 0;
      }
      const LeaseRef lease = lease_of(2, 8);
      ThreadPool pool(2);
      ShardTrainer second(config, pool);
      load(second, config, lease, first.store, *parts, plan.round_of(at), at);
      for (BatchIndex batch = at; batch < 14; ++batch) {
        const auto outcome = train_ok(second, make_unit(config, {lease}, batch, 1));
        CAPTURE(at, batch);
        REQUIRE(outcome.result.batches == expected[batch].result.batches);
        REQUIRE(outcome.commits.size() == expected[batch].commits.size());
        for (std::size_t i = 0; i < outcome.commits.size(); ++i) {
          REQUIRE(outcome.commits[i].update == expected[batch].commits[i].update);
        }
      }
    }
    REQUIRE(mixed_staleness == (sampling == Sampling::kLsh));
  }
}

TEST_CASE("replay: a shard loaded from its last commit repeats the batches since", "[loading]") {
  const ModelConfig config = small_config();
  Holder holder(config);
  holder.train(0, 7);
  const StoredShard at_checkpoint_2 = holder.store;
  const auto expected = train_ok(holder.trainer, make_unit(config, {holder.lease}, 7, 4));
  REQUIRE(expected.commits.size() == 1);
  for (const SimdLevel level : available_simd_levels()) {
    ThreadPool pool(1);
    ShardTrainer replayer(config, pool, kernels_for(level));
    load(replayer, config, holder.lease, at_checkpoint_2, {}, 2, 7);
    const auto replayed = train_ok(replayer, make_unit(config, {holder.lease}, 7, 4));
    REQUIRE(replayed.result.batches == expected.result.batches);
    REQUIRE(replayed.commits == expected.commits);
  }
}

TEST_CASE("loading: a grant that does not fit the run is refused", "[loading]") {
  const ModelConfig config = small_config();
  ThreadPool pool(1);
  ShardTrainer trainer(config, pool);
  const auto refused = [&](const std::string& words, auto&& spoil) {
    LeaseGrant grant = test::initial_grant(config, lease_of(1));
    spoil(grant);
    require_refused(trainer.begin_load(grant), words);
    REQUIRE(trainer.leases().empty());
  };
  refused("shard 5 is no output shard", [](LeaseGrant& g) { g.lease.shard = ShardId{5}; });
  refused("shard 6 is no output shard", [](LeaseGrant& g) { g.lease.shard = ShardId{6}; });
  refused("label counts", [](LeaseGrant& g) { g.label_counts.pop_back(); });
  refused("exceeds the 107 training examples", [](LeaseGrant& g) { g.label_counts[3] = 108; });
  refused("beyond the run's 4 rounds", [](LeaseGrant& g) { g.base_round = 5; });
  refused("does not lie in the round", [](LeaseGrant& g) { g.next_batch = 4; });
  refused("does not lie in the round", [](LeaseGrant& g) {
    g.base_round = 2;
    g.next_batch = 6;
  });
  refused("does not lie in the round", [](LeaseGrant& g) {
    g.base_round = 4;
    g.next_batch = 15;
  });
  refused("cannot be", [](LeaseGrant& g) { g.base_chunks = 1; });
  refused("cannot be", [](LeaseGrant& g) { g.chunks = 4'000'000'000u; });
  refused("no handed-over chunk", [](LeaseGrant& g) { g.next_batch = 2; });
}

TEST_CASE("loading: a chunk that does not fit the shard is refused and changes nothing",
          "[loading]") {
  const ModelConfig config = small_config();
  ThreadPool pool(1);
  ShardTrainer trainer(config, pool);
  const LeaseRef lease = lease_of(1);
  LeaseGrant grant = test::initial_grant(config, lease);
  grant.base_chunks = 2;
  grant.chunks = 3;
  REQUIRE(trainer.begin_load(grant).ok());

  ShardChunk good{.lease = lease, .chunk = 0, .rows = {}};
  good.rows.rows = {4, 9};
  good.rows.values.assign(2 * 49, 0.25F);
  good.rows.states = {0.0F, 1.0F};
  good.rows.codes.assign(2 * 9, 15);
  const auto refused = [&](const std::string& words, auto&& spoil) {
    ShardChunk chunk = good;
    spoil(chunk);
    CAPTURE(words);
    require_refused(trainer.load_chunk(chunk), words);
  };
  refused("chunk 3 of 3 does not exist", [](ShardChunk& c) { c.chunk = 3; });
  refused("do not fit", [](ShardChunk& c) { c.rows.values.pop_back(); });
  refused("do not fit", [](ShardChunk& c) { c.rows.states.push_back(0); });
  refused("do not fit", [](ShardChunk& c) { c.rows.codes.clear(); });
  refused("do not fit", [](ShardChunk& c) { c.rows.stale_codes = {0, 0}; });
  refused("do not fit", [](ShardChunk& c) { c.chunk = 2; });  // a hand-over's chunk has flags
  refused("row 60 is out of range", [](ShardChunk& c) { c.rows.rows[1] = 60; });
  refused("row 4 is out of order", [](ShardChunk& c) { c.rows.rows[1] = 4; });
  refused("optimizer state of -1", [](ShardChunk& c) { c.rows.states[0] = -1; });
  refused("optimizer state of nan", [](ShardChunk& c) { c.rows.states[1] = NAN; });
  refused("row 9 has a weight of inf", [](ShardChunk& c) { c.rows.values[50] = INFINITY; });
  refused("row 4 has a weight of nan", [](ShardChunk& c) { c.rows.values[48] = NAN; });
  refused("row 4 has a weight of 1e+30", [](ShardChunk& c) { c.rows.values[0] = 1e30F; });
  refused("row 9 has a hash code of 16, beyond 4 bits",
          [](ShardChunk& c) { c.rows.codes[17] = 16; });
  refused("2 is not a flag", [](ShardChunk& c) {
    c.chunk = 2;
    c.rows.stale_codes = {0, 2};
  });
  REQUIRE(trainer.load_chunk(good).ok());
  require_refused(trainer.load_chunk(good), "chunk 0 came twice");
  refused("row 4 came in an earlier chunk", [](ShardChunk& c) { c.chunk = 1; });

  const auto early = trainer.finish_load(lease);
  REQUIRE_FALSE(early.ok());
  REQUIRE_THAT(early.error().message, Catch::Matchers::Contains("chunk 1 has not come"));
  REQUIRE(trainer.load_chunk({.lease = lease, .chunk = 1, .rows = {}}).ok());
  // The rows of a hand-over lie on top of the base's.
  good.chunk = 2;
  good.rows.stale_codes = {0, 1};
  REQUIRE(trainer.load_chunk(good).ok());
  REQUIRE(trainer.finish_load(lease).ok());
  REQUIRE(trainer.finish_load(lease).ok());
  require_refused(trainer.load_chunk(good), "after the shard was loaded");
}

TEST_CASE("leases: only the present one counts", "[loading]") {
  const ModelConfig config = small_config();
  ThreadPool pool(1);
  ShardTrainer trainer(config, pool);
  test::load_initial(trainer, config, {lease_of(0, 5)});
  const auto earlier = trainer.begin_load(test::initial_grant(config, lease_of(0, 4)));
  REQUIRE(earlier.error().code == ErrorCode::kStaleLease);
  trainer.drop(lease_of(0, 4));
  trainer.drop(lease_of(3, 4));
  REQUIRE(trainer.leases() == std::vector<LeaseRef>{lease_of(0, 5)});
  REQUIRE(trainer.hand_over(lease_of(0, 4)).error().code == ErrorCode::kStaleLease);
  REQUIRE(trainer.load_chunk({.lease = lease_of(0, 6), .chunk = 0, .rows = {}}).error().code ==
          ErrorCode::kStaleLease);
  REQUIRE(trainer.finish_load(lease_of(1)).error().code == ErrorCode::kStaleLease);

  // A later grant replaces the shard, also while it is being loaded.
  REQUIRE(trainer.begin_load(test::initial_grant(config, lease_of(0, 6))).ok());
  REQUIRE(trainer.begin_load(test::initial_grant(config, lease_of(0, 7))).ok());
  REQUIRE(trainer.hand_over(lease_of(0, 7)).error().code == ErrorCode::kProtocol);
  REQUIRE(trainer.finish_load(lease_of(0, 7)).ok());
  REQUIRE(trainer.leases() == std::vector<LeaseRef>{lease_of(0, 7)});
  train_ok(trainer, make_unit(config, {lease_of(0, 7)}, 0, 1));
  trainer.drop(lease_of(0, 7));
  REQUIRE(trainer.leases().empty());
}

TEST_CASE("memory: the estimate covers what a trained shard holds", "[loading]") {
  ModelConfig config = small_config();
  config.labels = 4000;
  config.hidden = 128;
  Holder holder(config);
  const std::uint64_t loaded = holder.trainer.memory_bytes();
  REQUIRE(loaded > std::uint64_t{800} * 129 * 4);
  holder.train(0, 3);
  REQUIRE(holder.trainer.memory_bytes() > loaded);
  REQUIRE(ShardTrainer::shard_bytes(config) > loaded / 2);
  REQUIRE(ShardTrainer::shard_bytes(config) < 4 * holder.trainer.memory_bytes());
}

}  // namespace gleaner

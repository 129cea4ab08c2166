// The way back to the master's checkpoint, and taking a shard up again there.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>

#include "common/model/shard_rows.hpp"
#include "common/train/kernels.hpp"
#include "common/train/output_layer.hpp"
#include "common/train/sim_hash.hpp"
#include "tests/unit/common/train/shard_holder.hpp"

namespace gleaner {
namespace {

using test::Holder;
using test::lease_of;
using test::make_unit;
using test::small_config;
using test::StoredShard;
using test::train_ok;

constexpr BatchIndex kBatches = 14;  // 4 rounds

ModelConfig config_with(Sampling sampling) {
  ModelConfig config = small_config();
  config.sampling = sampling;
  config.active_cap = 20;
  return config;
}

// The earliest checkpoint at which the master can be when a holder stands before batch `at`: it has
// two rounds open.
RoundIndex earliest_checkpoint(const RunPlan& plan, BatchIndex at) {
  const RoundIndex round = at == kBatches ? plan.round_count() : plan.round_of(at);
  const RoundIndex back = at == plan.round_begin(round) ? 2 : 1;
  return round < back ? 0 : round - back;
}

LeaseGrant held_grant(const RunPlan& plan, RoundIndex checkpoint, std::uint64_t epoch) {
  LeaseGrant grant;
  grant.lease = lease_of(2, epoch);
  grant.base_round = checkpoint;
  grant.next_batch = plan.round_begin(checkpoint);
  grant.is_held = true;
  return grant;
}

// One output shard by itself.
struct Bench {
  explicit Bench(const ModelConfig& model) : config(model), shard(context, ShardId{2}) {}

  // Sets every row to what the store has, or to its beginning.
  void load(const StoredShard& store) {
    const LeaseGrant grant = test::initial_grant(config, lease_of(2));
    std::vector<float> values(config.hidden + std::size_t{1});
    for (std::uint32_t row = 0; row < shard.rows().rows(); ++row) {
      if (const auto stored = store.rows.find(row); stored != store.rows.end()) {
        shard.load(row, stored->second.values, stored->second.state, stored->second.codes);
        continue;
      }
      initial_row(config, map, ShardId{2}, row, grant.label_counts[row], values);
      shard.load_initial(row, values);
    }
    shard.finish_loading({pool, scratch});
  }

  // Trains [begin, end) and commits to `store` where a round ends.
  void train(BatchIndex begin, BatchIndex end, StoredShard& store) {
    for (BatchIndex batch = begin; batch < end; ++batch) {
      const std::uint32_t examples = plan.examples_in(batch);
      const QuantizedActivations hidden = test::make_hidden(config, batch, examples);
      queries.prepare(batch, hidden, pool);
      const Positives positives =
          test::in_shards(test::make_positives(config, batch, examples), map, {lease_of(2)});
      const ShardBatch only{&queries, &positives, plan.rates(batch).output};
      OutputShard* const held[] = {&shard};
      ShardOutcome outcome;
      layer.hold(held);
      layer.train({&only, 1}, held, {&outcome, 1});
      if (plan.is_round_end(batch + 1)) {
        for (const SparseUpdate& part : shard.commit(scratch[0])) {
          store.apply(config, test::initial_grant(config, lease_of(2)), part);
        }
      } else if (plan.rehashes_after(batch)) {
        shard.rehash(scratch[0]);
      }
    }
  }

  ModelConfig config;
  ShardMap map{config};
  RunPlan plan{config};
  ThreadPool pool{1};
  const Kernels& kernels = default_kernels();
  std::unique_ptr<SimHash> sim_hash =
      config.sampling == Sampling::kLsh ? std::make_unique<SimHash>(config, kernels) : nullptr;
  ShardContext context{config, map, kernels, sim_hash.get()};
  QueryBatch queries{config, sim_hash.get()};
  std::vector<ShardScratch> scratch{ShardScratch(config)};
  OutputShard shard;
  OutputLayer layer{context, pool, scratch};
};

void require_same(const Bench& a, const Bench& b) {
  const std::size_t tables = a.shard.codes().tables();
  std::vector<float> x(a.config.hidden + std::size_t{1}), y(x.size());
  std::vector<std::uint32_t> codes_x(tables), codes_y(tables);
  for (std::uint32_t row = 0; row < a.shard.rows().rows(); ++row) {
    CAPTURE(row);
    a.shard.rows().read(row, x);
    b.shard.rows().read(row, y);
    REQUIRE(std::equal(x.begin(), x.end(), y.begin(), [](float p, float q) {
      return std::bit_cast<std::uint32_t>(p) == std::bit_cast<std::uint32_t>(q);
    }));
    REQUIRE(a.shard.rows().state(row) == b.shard.rows().state(row));
    REQUIRE(a.shard.rows().is_stored(row) == b.shard.rows().is_stored(row));
    a.shard.codes().read(row, codes_x);
    b.shard.codes().read(row, codes_y);
    REQUIRE(codes_x == codes_y);
  }
}

}  // namespace

TEST_CASE("step back: rows, states, codes and tables are those of a freshly loaded shard",
          "[step_back]") {
  for (const Sampling sampling : {Sampling::kLsh, Sampling::kAll}) {
    const ModelConfig config = config_with(sampling);
    const RunPlan plan(config);
    for (BatchIndex at = 0; at <= kBatches; ++at) {
      const RoundIndex round = at == kBatches ? plan.round_count() : plan.round_of(at);
      for (RoundIndex to = earliest_checkpoint(plan, at); to <= round; ++to) {
        CAPTURE(at, to);
        Bench kept(config);
        StoredShard at_checkpoint, later;
        kept.load({});
        kept.train(0, plan.round_begin(to), at_checkpoint);
        kept.train(plan.round_begin(to), at, later);
        REQUIRE(kept.shard.step_back(round - to));
        kept.shard.finish_loading({kept.pool, kept.scratch});
        Bench fresh(config);
        fresh.load(at_checkpoint);
        require_same(kept, fresh);
        REQUIRE(kept.shard.digest() == at_checkpoint.digest(ShardId{2}));
        REQUIRE(kept.shard.digest() == fresh.shard.digest());
      }
    }
  }
}

TEST_CASE("step back: a shard taken up again trains on to the same bits", "[step_back]") {
  const ModelConfig config = config_with(Sampling::kLsh);
  const RunPlan plan(config);
  Holder reference(config);
  std::vector<ShardTrainer::UnitOutcome> expected;
  for (BatchIndex batch = 0; batch < kBatches; ++batch) {
    expected.push_back(train_ok(reference.trainer, make_unit(config, {reference.lease}, batch, 1)));
  }
  for (BatchIndex at = 0; at < kBatches; ++at) {
    for (RoundIndex to = earliest_checkpoint(plan, at); to <= plan.round_of(at); ++to) {
      CAPTURE(at, to);
      Holder holder(config);
      holder.train(0, at);
      REQUIRE(holder.trainer.step_back(to).size() == 1);
      REQUIRE(holder.trainer.adopt(held_grant(plan, to, 2)).ok());
      for (BatchIndex batch = plan.round_begin(to); batch < kBatches; ++batch) {
        const auto outcome =
            train_ok(holder.trainer, make_unit(config, {lease_of(2, 2)}, batch, 1));
        REQUIRE(outcome.result.batches == expected[batch].result.batches);
        REQUIRE(outcome.commits.size() == expected[batch].commits.size());
        for (std::size_t i = 0; i < outcome.commits.size(); ++i) {
          REQUIRE(outcome.commits[i].update == expected[batch].commits[i].update);
        }
      }
    }
  }
}

TEST_CASE("step back: beyond what it knows a shard is forgotten, and so is its memory",
          "[step_back]") {
  const ModelConfig config = small_config();
  const RunPlan plan(config);
  // Further back than two rounds; ahead of where it stands; before the checkpoint it was loaded at.
  for (const int what : {0, 1, 2}) {
    CAPTURE(what);
    Holder holder(config);
    holder.train(0, 7);
    const std::uint64_t held = holder.trainer.memory_bytes();
    RoundIndex to = 3;
    if (what == 0) {
      holder.train(7, 8);
      to = 0;
    }
    if (what == 2) {
      test::load(holder.trainer, config, lease_of(2, 9), holder.store, {}, 2, 7);
      train_ok(holder.trainer, make_unit(config, {lease_of(2, 9)}, 7, 1));
      to = 1;
    }
    REQUIRE(holder.trainer.step_back(to).empty());
    REQUIRE(holder.trainer.leases().empty());
    REQUIRE(holder.trainer.memory_bytes() < held / 2);
  }
}

TEST_CASE("step back: a shard handed over in the middle of a round goes back to its start",
          "[step_back]") {
  const ModelConfig config = small_config();
  const RunPlan plan(config);
  Holder first(config);
  first.train(0, 9);
  auto parts = first.trainer.hand_over(first.lease);
  REQUIRE(parts.ok());
  ThreadPool pool(1);
  ShardTrainer second(config, pool);
  test::load(second, config, lease_of(2, 4), first.store, *parts, 2, 9);
  const auto offered = second.step_back(2);
  REQUIRE(offered.size() == 1);
  REQUIRE(offered[0].lease == lease_of(2, 4));
  REQUIRE(offered[0].digest == first.store.digest(ShardId{2}));
}

TEST_CASE("step back: nothing is trained or adopted but under the grant that fits", "[step_back]") {
  const ModelConfig config = small_config();
  const RunPlan plan(config);
  Holder holder(config);
  holder.train(0, 5);
  LeaseGrant grant = held_grant(plan, 1, 6);
  REQUIRE(holder.trainer.adopt(grant).error().code == ErrorCode::kStaleLease);  // not offered
  REQUIRE(holder.trainer.step_back(1).size() == 1);
  // The earlier lease is over.
  REQUIRE(holder.trainer.train(make_unit(config, {holder.lease}, 4, 1)).error().code ==
          ErrorCode::kStaleLease);
  REQUIRE_FALSE(holder.trainer.hand_over(holder.lease).ok());
  const auto refused = [&](ErrorCode code, auto&& spoil) {
    LeaseGrant other = grant;
    spoil(other);
    REQUIRE(holder.trainer.adopt(other).error().code == code);
  };
  refused(ErrorCode::kStaleLease, [](LeaseGrant& g) { g.lease = lease_of(3, 6); });
  refused(ErrorCode::kProtocol, [](LeaseGrant& g) { g.base_round = 0; });
  refused(ErrorCode::kProtocol, [](LeaseGrant& g) { ++g.next_batch; });
  refused(ErrorCode::kProtocol, [](LeaseGrant& g) { g.is_held = false; });
  REQUIRE(holder.trainer.adopt(grant).ok());
  REQUIRE(holder.trainer.adopt(grant).error().code == ErrorCode::kStaleLease);
  train_ok(holder.trainer, make_unit(config, {grant.lease}, 4, 1));

  // A shard that is offered is dropped under the lease it was offered by.
  REQUIRE(holder.trainer.step_back(1).size() == 1);
  holder.trainer.drop(grant.lease);
  REQUIRE(holder.trainer.leases().empty());
  // A shard that is being loaded has nothing to offer.
  REQUIRE(holder.trainer.begin_load(test::initial_grant(config, lease_of(0))).ok());
  REQUIRE(holder.trainer.step_back(0).empty());
  REQUIRE(holder.trainer.leases().empty());
}

TEST_CASE("step back: a master that counts epochs again can lend the shard or replace it",
          "[step_back]") {
  // Begins the same run begun again in an empty store.
  const ModelConfig config = small_config();
  const RunPlan plan(config);
  for (const bool is_held : {true, false}) {
    Holder holder(config);
    holder.lease = lease_of(2, 1000);
    test::load_initial(holder.trainer, config, {holder.lease});
    holder.train(0, 2);
    REQUIRE(holder.trainer.step_back(0).size() == 1);
    if (is_held) {
      REQUIRE(holder.trainer.adopt(held_grant(plan, 0, 3)).ok());
    } else {
      test::load_initial(holder.trainer, config, {lease_of(2, 3)});
    }
    train_ok(holder.trainer, make_unit(config, {lease_of(2, 3)}, 0, 1));
  }
}

TEST_CASE("step back: the digest names what differs, whatever the order", "[step_back]") {
  const ModelConfig config = small_config();
  Holder holder(config);
  holder.train(0, 4);
  StoredShard other = holder.store;
  const ShardDigest digest = other.digest(ShardId{2});
  REQUIRE(digest.rows > 10);
  REQUIRE(other.digest(ShardId{1}) != digest);
  auto& row = other.rows.begin()->second;
  row.state += 1.0F;
  REQUIRE(other.digest(ShardId{2}) != digest);
  row.state -= 1.0F;
  row.values[3] = -row.values[3];
  REQUIRE(other.digest(ShardId{2}) != digest);
  other.rows.erase(other.rows.begin());
  REQUIRE(other.digest(ShardId{2}).rows == digest.rows - 1);
}

TEST_CASE("memory: the way back takes what the estimate allows for it", "[step_back]") {
  ModelConfig config = small_config();
  config.labels = 4000;
  config.hidden = 128;
  config.sampling = Sampling::kAll;  // every row is touched
  Holder holder(config);
  const std::uint64_t loaded = holder.trainer.memory_bytes();
  holder.train(0, 12);
  const std::uint64_t rows = std::uint64_t{800} * 131 * 4;
  REQUIRE(holder.trainer.memory_bytes() >= loaded + 2 * rows);
  REQUIRE(ShardTrainer::shard_bytes(config) >= 3 * rows);
}

}  // namespace gleaner

// One output shard on its own, batch by batch.
#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "common/model/shard_rows.hpp"
#include "common/train/output_layer.hpp"
#include "tests/unit/common/train/train_fixture.hpp"

namespace gleaner {

// One shard, loaded with the initial rows.
struct ShardScene {
  ModelConfig config;
  ShardMap map;
  RunPlan plan;
  ThreadPool pool{1};
  const Kernels& kernels = kernels_for(SimdLevel::kScalar);
  std::unique_ptr<SimHash> sim_hash;
  ShardContext context;
  std::vector<ShardScratch> scratch;
  QueryBatch queries;
  QuantizedActivations hidden;
  Positives positives;
  OutputShard shard;
  OutputLayer layer;

  explicit ShardScene(const ModelConfig& model, ShardId id = ShardId{1})
      : config(model),
        map(config),
        plan(config),
        sim_hash(config.sampling == Sampling::kLsh ? std::make_unique<SimHash>(config, kernels)
                                                   : nullptr),
        context{config, map, kernels, sim_hash.get()},
        scratch(1, ShardScratch(config)),
        queries(config, sim_hash.get()),
        shard(context, id),
        layer(context, pool, scratch) {
    std::vector<float> values(config.hidden + 1);
    for (std::uint32_t row = 0; row < shard.rows().rows(); ++row) {
      initial_row(config, map, id, row, 2, values);
      shard.load_initial(row, values);
    }
    shard.finish_loading({pool, scratch});
    OutputShard* const held[] = {&shard};
    layer.hold(held);
  }

  void prepare(BatchIndex batch) {
    const std::uint32_t examples = plan.examples_in(batch);
    hidden = test::make_hidden(config, batch, examples);
    positives = test::in_shards(test::make_positives(config, batch, examples), map,
                                {test::lease_of(raw(shard.id()))});
    queries.prepare(batch, hidden, pool);
  }

  ShardOutcome train(BatchIndex batch) {
    prepare(batch);
    return train_prepared(batch);
  }

  ShardOutcome train_prepared(BatchIndex batch) {
    const ShardBatch only{&queries, &positives, plan.rates(batch).output};
    OutputShard* const held[] = {&shard};
    ShardOutcome outcome;
    layer.train({&only, 1}, held, {&outcome, 1});
    return outcome;
  }

  std::vector<SparseUpdate> commit() {
    layer.mark_codes_changed();
    return shard.commit(scratch[0]);
  }

  // The gradient of fused batch `index`, in steps.
  [[nodiscard]] std::vector<std::int32_t> gradient(std::size_t index = 0) const {
    std::vector<std::int32_t> sum(hidden.codes.size());
    for (const ShardScratch& mine : scratch) mine.add_gradient_to(index, 0, sum);
    return sum;
  }

  [[nodiscard]] std::vector<float> row(std::uint32_t index) const {
    std::vector<float> values(config.hidden + 1);
    shard.rows().read(index, values);
    return values;
  }

  // Every row's hash codes must follow from its weights.
  void require_fresh_codes() {
    std::vector<std::uint32_t> stored(config.tables);
    std::vector<std::uint32_t> computed(config.tables);
    HashScratch hash;
    for (std::uint32_t index = 0; index < shard.rows().rows(); ++index) {
      const float* weights[] = {shard.rows().weights(index)};
      sim_hash->hash_rows(weights, computed, hash);
      shard.codes().read(index, stored);
      REQUIRE(stored == computed);
    }
  }
};

}  // namespace gleaner

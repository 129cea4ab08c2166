// Training in its steady state takes no memory: every allocation of this program is counted.
#include <array>

#include "common/model/shard_rows.hpp"
#include "common/train/input_layer.hpp"
#include "common/train/output_layer.hpp"
#include "tests/support/watched_memory.hpp"
#include "tests/unit/common/train/input_examples.hpp"
#include "tests/unit/common/train/train_fixture.hpp"

namespace gleaner {
namespace {

constexpr BatchIndex kWarm = 40;
constexpr BatchIndex kCounted = 40;

ModelConfig long_rounds() {
  ModelConfig config = test::small_config();
  config.round_batches = 100;
  config.points = std::uint64_t{16} * 100;
  return config;
}

}  // namespace

TEST_CASE("allocation: the counter counts", "[allocation]") {
  const std::size_t before = test::allocations();
  const std::vector<int> some(100);
  const AlignedVector<float> others(100);
  REQUIRE(test::allocations() == before + 2);
}

TEST_CASE("allocation: an output shard's batches take no memory", "[allocation]") {
  const ModelConfig config = long_rounds();
  const ShardMap map(config);
  const Kernels& kernels = default_kernels();
  const SimHash sim_hash(config, kernels);
  const ShardContext context{config, map, kernels, &sim_hash};
  ThreadPool pool(1);  // which of several threads meets its largest batch when is chance
  std::vector<ShardScratch> scratch(1, ShardScratch(config));
  const ShardId id{1};
  OutputShard shard(context, id);
  std::vector<float> values(config.hidden + std::size_t{1});
  for (std::uint32_t row = 0; row < shard.rows().rows(); ++row) {
    initial_row(config, map, id, row, 2, values);
    shard.load_initial(row, values);
  }
  shard.finish_loading({pool, scratch});
  OutputLayer layer(context, pool, scratch);
  OutputShard* const held[] = {&shard};
  layer.hold(held);
  std::array<QueryBatch, 2> queries{QueryBatch(config, &sim_hash), QueryBatch(config, &sim_hash)};
  std::size_t taken = 0;
  std::uint64_t active = 0;
  for (BatchIndex batch = 0; batch < kWarm + kCounted; ++batch) {
    const QuantizedActivations hidden = test::make_hidden(config, batch, config.batch_examples);
    const Positives positives = test::in_shards(
        test::make_positives(config, batch, config.batch_examples), map, {test::lease_of(raw(id))});
    const std::size_t before = test::allocations();
    // Alone, then two together.
    for (QueryBatch& own : queries) own.prepare(batch, hidden, pool);
    const std::array<ShardBatch, 2> together{ShardBatch{&queries[0], &positives, 0.01F},
                                             ShardBatch{&queries[1], &positives, 0.01F}};
    std::array<ShardOutcome, 2> outcomes;
    layer.train(std::span(together).first(1), held, std::span(outcomes).first(1));
    active += outcomes[0].active;
    layer.train(together, held, outcomes);
    active += outcomes[1].active;
    if (batch % 3 == 0) {
      shard.rehash(scratch[0]);
      layer.mark_codes_changed();
    }
    if (batch >= kWarm) taken += test::allocations() - before;
  }
  REQUIRE(active > 0);
  REQUIRE(taken == 0);
}

TEST_CASE("allocation: the input layer's updates take no memory", "[allocation]") {
  ModelConfig config = long_rounds();
  config.input_shards = 3;
  const ShardMap map(config);
  const std::vector<ShardId> first{map.input_shard(0)};
  const std::vector<ShardId> others{map.input_shard(1), map.input_shard(2)};
  ThreadPool pool(1);
  InputLayer layer(config, pool);
  std::size_t taken = 0;
  for (BatchIndex batch = 0; batch < kWarm + kCounted; ++batch) {
    const InputExamples examples = make_input_examples(batch + 1, 16, config.features, 20);
    const QuantizedActivations codes = layer.forward(examples.views, batch);
    const std::vector<std::int32_t> gradient(codes.codes.size(), 100);
    const std::size_t before = test::allocations();
    if (batch % 2 == 0) {
      layer.backward(batch, config.input_rate, examples.views, codes, gradient);
    } else {
      layer.backward(batch, config.input_rate, examples.views, codes, gradient, first);
      layer.backward(batch, config.input_rate, examples.views, codes, gradient, others);
    }
    if (batch >= kWarm) taken += test::allocations() - before;
  }
  REQUIRE(taken == 0);
}

}  // namespace gleaner

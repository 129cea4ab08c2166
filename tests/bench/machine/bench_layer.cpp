#include "tests/bench/machine/bench_layer.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "common/counter_random.hpp"
#include "common/model/shard_rows.hpp"

namespace gleaner {
namespace {

constexpr std::uint32_t kActive = 1000;
constexpr std::uint32_t kClusters = 200;

}  // namespace

QuantizedActivations clustered_codes(std::uint32_t hidden, std::uint32_t begin, std::uint32_t end) {
  QuantizedActivations codes{end - begin, hidden, std::vector<float>(end - begin, 0.01F), {}};
  for (std::uint32_t e = begin; e < end; ++e) {
    Rng rng(e, Purpose::kTest);
    const std::uint64_t cluster = rng.next_below(kClusters);
    for (std::uint32_t i = 0; i < hidden; ++i) {
      const auto centre =
          static_cast<std::int64_t>(below(counter_random(1, Purpose::kTest, cluster, i), 400));
      const auto value = centre + static_cast<std::int64_t>(rng.next_below(200)) - 300;
      codes.codes.push_back(static_cast<std::uint8_t>(std::clamp<std::int64_t>(value, 0, 255) / 2));
    }
  }
  return codes;
}

ModelConfig layer_of(std::uint32_t hidden, std::uint32_t rows, std::uint32_t batch_examples) {
  ModelConfig config;
  config.points = batch_examples;
  config.round_batches = 1;
  config.features = kBenchFeatures;
  config.labels = rows;
  config.hidden = hidden;
  config.output_shards = kBenchShards;
  config.batch_examples = batch_examples;
  config.hash_bits = std::max(std::bit_width(rows / kBenchRowsPerBucket), 2u) - 1;
  config.active_cap = kActive;
  return config;
}

Positives no_positives(std::uint32_t examples) {
  Positives none;
  none.offsets.resize(examples + std::size_t{1});
  return none;
}

BenchLayer::BenchLayer(const ModelConfig& model, const Kernels& kernels)
    : config(model),
      map(config),
      sim_hash(config, kernels),
      context{config, map, kernels, &sim_hash},
      scratch(1, ShardScratch(config)),
      layer(context, pool, scratch) {
  std::vector<float> values(config.hidden + std::size_t{1});
  for (std::uint32_t s = 0; s < kBenchShards; ++s) {
    OutputShard& shard = shards.emplace_back(context, ShardId{s});
    for (std::uint32_t row = 0; row < shard.rows().rows(); ++row) {
      initial_row(config, map, shard.id(), row, 1, values);
      shard.load_initial(row, values);
    }
    shard.finish_loading(scratch[0]);
    held.push_back(&shard);
  }
  layer.hold(held);
}

std::uint64_t BenchLayer::train(const QueryBatch& batch) {
  const Positives none = no_positives(batch.examples());
  const ShardBatch only{&batch, &none, 1e-6F};
  std::vector<ShardOutcome> outcomes(held.size());
  layer.train({&only, 1}, held, outcomes);
  std::uint64_t active = 0;
  for (const ShardOutcome& outcome : outcomes) active += outcome.active;
  return active;
}

std::uint64_t BenchLayer::rows_visited() const {
  std::uint64_t rows = 0;
  for (std::size_t shard = 0; shard < held.size(); ++shard) rows += layer.rows(0, shard).size();
  return rows;
}

}  // namespace gleaner

// A synthetic output layer and its batches, for the figures of training.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "common/model/model_config.hpp"
#include "common/model/shard_map.hpp"
#include "common/thread_pool.hpp"
#include "common/train/kernels.hpp"
#include "common/train/output_layer.hpp"
#include "common/train/sim_hash.hpp"
#include "common/work/quantized_activations.hpp"

namespace gleaner {

inline constexpr std::uint32_t kBenchShards = 16;
inline constexpr std::uint32_t kBenchFeatures = 100'000;
inline constexpr std::uint32_t kBenchRowsPerBucket = 200;

// Activations of examples [begin, end): ReLU-like vectors around cluster centres, about half of
// them zero, so that buckets fill as unevenly as in a trained layer.
QuantizedActivations clustered_codes(std::uint32_t hidden, std::uint32_t begin, std::uint32_t end);

// A layer of `rows` in 16 shards, with 1,000 active neurons an example.
ModelConfig layer_of(std::uint32_t hidden, std::uint32_t rows, std::uint32_t batch_examples);

Positives no_positives(std::uint32_t examples);

// A layer with its initial rows, hashed.
struct BenchLayer {
  BenchLayer(const ModelConfig& model, const Kernels& kernels);

  const ModelConfig config;
  const ShardMap map;
  const SimHash sim_hash;
  const ShardContext context;
  ThreadPool pool{1};
  std::deque<OutputShard> shards;
  std::vector<ShardScratch> scratch;
  OutputLayer layer;
  std::vector<OutputShard*> held;

  // Trains a batch on all shards, without true labels. Returns the number of active pairs.
  std::uint64_t train(const QueryBatch& batch);
  // Rows that the last batch visited.
  [[nodiscard]] std::uint64_t rows_visited() const;
};

}  // namespace gleaner

// The input layer: sparse features to H hidden units. It is held as input shards and stored
// feature-major. forward() divides work by example and backward() by feature row, so results depend
// on neither thread count nor SIMD level. One thread at a time; loops run on the pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/data/packed_dataset.hpp"
#include "common/ids.hpp"
#include "common/model/model_config.hpp"
#include "common/model/shard_rows.hpp"
#include "common/result.hpp"
#include "common/thread_pool.hpp"
#include "common/train/kernels.hpp"
#include "common/work/quantized_activations.hpp"

namespace gleaner {

// Quantizes the hidden units' activations, the input of output shards: applies dropout, then rounds
// to ModelConfig::activation_bits with one scale per example. It needs the activations of all input
// shards, but no weights. Any thread may use it; loops run on the pool.
class ActivationQuantizer {
 public:
  // `pool` outlives the quantizer.
  ActivationQuantizer(const ModelConfig& config, ThreadPool& pool);

  // Changes `activations` (examples x H). With `batch` (training) dropout by (seed, batch,
  // position, unit) is applied; without (evaluation) it is not.
  [[nodiscard]] QuantizedActivations encode(std::span<float> activations,
                                            std::optional<BatchIndex> batch) const;

  // An empty result of the right size, to be filled by encode() of one example after the other.
  [[nodiscard]] QuantizedActivations room_for(std::size_t examples) const;

  // One example: changes `units` (H), writes its quantized activations to `codes` (H) and returns
  // their scale. `position` is the example's index in the batch.
  [[nodiscard]] float encode(std::span<float> units, std::optional<BatchIndex> batch,
                             std::size_t position, std::uint8_t* codes) const;

  // The factor by which a kept unit was scaled up, so that evaluation needs no correction.
  [[nodiscard]] float keep_scale() const { return keep_scale_; }

 private:
  void drop_units(BatchIndex batch, std::size_t position, std::span<float> units) const;

  ThreadPool& pool_;
  std::uint32_t hidden_;
  std::uint64_t seed_;
  std::uint32_t bits_;
  std::uint64_t threshold_;  // of 2^24
  float keep_scale_;
};

class InputLayer {
 public:
  // The initial layer (checkpoint 0) with all shards. `pool` outlives the layer.
  InputLayer(const ModelConfig& config, ThreadPool& pool,
             const Kernels& kernels = default_kernels());

  // Selects a layer that holds no shard yet. Shards held later can be stepped back by
  // `commits_kept` commits.
  struct NoShards {
    std::uint32_t commits_kept = 0;
  };

  InputLayer(const ModelConfig& config, ThreadPool& pool, NoShards none,
             const Kernels& kernels = default_kernels());
  ~InputLayer();

  // Holds the shard in its initial state (checkpoint 0), and discards an earlier state of it.
  void hold(ShardId shard);
  void drop(ShardId shard);

  // Loads rows of a checkpoint. Refuses rows out of range.
  Result<void> load_rows(ShardId shard, const ShardRows& rows);
  // Loads rows that have changed since the last commit. The values that they replace are kept as
  // committed.
  Result<void> load_touched_rows(ShardId shard, const ShardRows& rows);
  // The rows changed since the last commit, ascending, in at least one part.
  [[nodiscard]] std::vector<ShardRows> touched_rows(ShardId shard) const;

  // Undoes changes since the last commit, and the last `commits` commits. Returns false and changes
  // nothing when these commits are not kept any more.
  bool step_back(ShardId shard, std::uint32_t commits);
  // The digest of the rows that commits have changed, equal to the store's digest. Requires no
  // change since the last commit.
  [[nodiscard]] ShardDigest digest(ShardId shard) const;

  // Activations (examples x H) of the units of these shards, which must be held; other units are
  // unspecified. forward() does this for all shards and then calls ActivationQuantizer::encode.
  [[nodiscard]] std::vector<float> activations(std::span<const ExampleView> examples,
                                               std::optional<BatchIndex> batch,
                                               std::span<const ShardId> shards);

  // Quantized activations of the examples with the present weights. Every shard must be held.
  // Features beyond the configuration's range are ignored: only files that training has not seen
  // can have them. `batch` as in ActivationQuantizer::encode.
  QuantizedActivations forward(std::span<const ExampleView> examples,
                               std::optional<BatchIndex> batch);

  // Applies the batch's update at `rate`. `gradient` (examples x H) is the sum of the activations'
  // gradients over all output shards, in multiples of 2^gradient_step_log2. `codes` and `examples`
  // are as in the batch's forward pass. Units whose quantized activation is zero are masked;
  // `codes` serves nothing else.
  void backward(BatchIndex batch, float rate, std::span<const ExampleView> examples,
                const QuantizedActivations& codes, std::span<const std::int32_t> gradient);
  // Updates these shards only. They must be held; only their units' columns of `codes` and
  // `gradient` are read.
  void backward(BatchIndex batch, float rate, std::span<const ExampleView> examples,
                const QuantizedActivations& codes, std::span<const std::int32_t> gradient,
                std::span<const ShardId> shards);

  // Ends a round: rounds the changed rows and returns the shard's sparse update since its last
  // commit, in parts of ascending rows.
  std::vector<SparseUpdate> commit(ShardId shard);

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gleaner

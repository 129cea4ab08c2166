// The input layer: sparse features to H hidden units, held as input shards, stored
// feature-major. One thread at a time; loops run on the pool. forward() splits by example,
// backward() by feature row, so results depend on neither thread count nor SIMD level.
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

// From the hidden units' activations to what output shards are trained on: dropout, then codes of
// ModelConfig::activation_bits with one scale an example. Needs no weights, so whoever has the
// activations of all input shards can do it. Any thread may use it; loops run on the pool.
class ActivationQuantizer {
 public:
  // `pool` outlives the coder.
  ActivationQuantizer(const ModelConfig& config, ThreadPool& pool);

  // `activations` (examples x H) is changed. Training (`batch` given) applies dropout by
  // (seed, batch, position, unit); evaluation (nullopt) does not.
  [[nodiscard]] QuantizedActivations encode(std::span<float> activations,
                                            std::optional<BatchIndex> batch) const;

  // For encode() of one example after the other.
  [[nodiscard]] QuantizedActivations room_for(std::size_t examples) const;

  // One example: changes `units` (H), writes its codes (H) and returns its scale. `position` is the
  // example's place in the batch.
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
  // The initial layer (checkpoint 0). `pool` outlives the layer.
  InputLayer(const ModelConfig& config, ThreadPool& pool,
             const Kernels& kernels = default_kernels());

  // A layer of which nothing is held yet. What will be can be stepped back by `commits_kept`
  // commits.
  struct NoShards {
    std::uint32_t commits_kept = 0;
  };

  InputLayer(const ModelConfig& config, ThreadPool& pool, NoShards none,
             const Kernels& kernels = default_kernels());
  ~InputLayer();

  // Holds the initial shard (checkpoint 0), whatever was held of it before.
  void hold(ShardId shard);
  void drop(ShardId shard);

  // Replaces stored rows with those of a checkpoint. Refuses rows out of range.
  Result<void> load_rows(ShardId shard, const ShardRows& rows);
  // Loads rows that have changed since the last commit; what they replace is committed.
  Result<void> load_touched_rows(ShardId shard, const ShardRows& rows);
  // The rows that have changed since the last commit, ascending, in parts; at least one.
  [[nodiscard]] std::vector<ShardRows> touched_rows(ShardId shard) const;

  // Takes back what is not committed, and `commits` commits; false, with nothing changed, when they
  // are not kept any more.
  bool step_back(ShardId shard, std::uint32_t commits);
  // The digest of the rows that commits have changed, as the store has it. Nothing may have changed
  // since.
  [[nodiscard]] ShardDigest digest(ShardId shard) const;

  // Activations (examples x H) of the units of these shards, which are held; the others'
  // are unspecified. Features and `batch` as in forward(), which is this for all shards and then
  // ActivationQuantizer::encode.
  [[nodiscard]] std::vector<float> activations(std::span<const ExampleView> examples,
                                               std::optional<BatchIndex> batch,
                                               std::span<const ShardId> shards);

  // Quantized activations of the examples with the weights as they stand; every shard is held.
  // Features beyond the configuration's range, which only unseen files can have, are ignored.
  // Training
  // (`batch` given) applies dropout by (seed, batch, position, unit); evaluation (nullopt) does
  // not.
  QuantizedActivations forward(std::span<const ExampleView> examples,
                               std::optional<BatchIndex> batch);

  // Applies the batch's update at `rate`: `gradient` is the whole layer's dh (sum over all output
  // shards), examples x H, in multiples of 2^gradient_step_log2; units whose code is zero are
  // masked. `codes` and `examples` are those of the batch's forward pass; of codes only whether
  // they are zero counts.
  void backward(BatchIndex batch, float rate, std::span<const ExampleView> examples,
                const QuantizedActivations& codes, std::span<const std::int32_t> gradient);
  // Updates these shards alone, which are held: of `codes` and `gradient` only their units' columns
  // count.
  void backward(BatchIndex batch, float rate, std::span<const ExampleView> examples,
                const QuantizedActivations& codes, std::span<const std::int32_t> gradient,
                std::span<const ShardId> shards);

  // Ends a round: returns the shard's sparse update since its last commit, in parts of ascending
  // rows, and adopts the rounded values.
  std::vector<SparseUpdate> commit(ShardId shard);

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gleaner

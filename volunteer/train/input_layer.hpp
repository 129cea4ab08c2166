// The input layer: sparse features to H hidden ReLU units, held as input shards, stored
// feature-major. One thread at a time; loops run on the pool. forward() splits by example,
// backward() by feature row, so results depend on neither thread count nor SIMD level.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/dataset/packed_dataset.hpp"
#include "common/ids.hpp"
#include "common/kernels/kernels.hpp"
#include "common/model_config.hpp"
#include "common/result.hpp"
#include "common/shard_rows.hpp"
#include "common/thread_pool.hpp"
#include "schema/hidden_codes.hpp"

namespace gleaner {

class InputLayer {
 public:
  // The initial layer (checkpoint 0). `pool` outlives the layer.
  InputLayer(const ModelConfig& config, ThreadPool& pool,
             const Kernels& kernels = default_kernels());
  ~InputLayer();

  // Replaces stored rows with those of a checkpoint. Refuses rows out of range.
  Result<void> load_rows(ShardId shard, const ShardRows& rows);

  // Hidden codes of the examples with the weights as they stand. Features beyond the
  // configuration's range, which only unseen files can have, are ignored. Training (`batch` given)
  // applies dropout by (seed, batch, position, unit); evaluation (nullopt) does not.
  HiddenCodes forward(std::span<const ExampleView> examples, std::optional<BatchIndex> batch);

  // Applies the batch's update at `rate`: `gradient` is the whole layer's dh (sum over all output
  // shards), examples x H, in multiples of 2^gradient_step_log2; units whose code is zero are
  // masked. `codes` and `examples` are those of the batch's forward pass.
  void backward(BatchIndex batch, float rate, std::span<const ExampleView> examples,
                const HiddenCodes& codes, std::span<const std::int32_t> gradient);

  // Ends a round: returns the shard's sparse update since its last commit, in parts of ascending
  // rows, and adopts the rounded values.
  std::vector<SparseUpdate> commit(ShardId shard);

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gleaner

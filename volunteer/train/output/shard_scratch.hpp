// Working memory for training output shards: one a thread, reused over shards and batches, so that
// a steady state allocates nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/kernels/aligned_vector.hpp"
#include "common/lsh/sim_hash.hpp"
#include "common/model/model_config.hpp"
#include "volunteer/train/output/active_set.hpp"

namespace gleaner {

// The most batches that are fused.
inline constexpr std::size_t kFusedBatches = 4;

// Words of a checksum (GradientRounding::check).
inline constexpr std::size_t kCheckWords = 16;

// The memory of one worker for a batch.
struct BatchScratch {
  std::vector<std::size_t> block_ends;  // of the pairs of a block's rows
  // examples x H: the gradient of the shards that this worker ended, in units (kGradientGuardBits);
  // between two shards, in whole steps.
  AlignedVector<std::uint32_t> sums;
  std::vector<std::uint32_t> checks;        // examples x kCheckWords: of `sums` between two shards
  std::vector<std::uint32_t> shard_checks;  // the same of the shard that is being ended
};

// Working memory of one thread, reused over shards and batches.
struct alignas(kCacheLine) ShardScratch {
  explicit ShardScratch(const ModelConfig& config) : chooser(config), batches(kFusedBatches) {}

  // Makes fused batch `index` ready for a first shard: its gradient is zero.
  void clear_gradient(std::size_t index, std::uint32_t examples, std::uint32_t hidden);

  // Adds entries of the gradient of fused batch `index` (examples x H) from `begin` on, in steps.
  void add_gradient_to(std::size_t index, std::size_t begin, std::span<std::int32_t> sum) const;

  [[nodiscard]] std::uint64_t memory_bytes() const;

  ActiveSetChooser chooser;
  std::vector<BatchScratch> batches;  // of those that are fused
  std::vector<std::uint32_t*> sums;   // of an example, one a worker
  std::vector<std::uint32_t> stale_rows;
  AlignedVector<float> row_gradients;  // kRowsPerStep x H
  std::vector<float> logits;
  std::vector<float> deltas;
  std::vector<const float*> hash_rows;
  std::vector<std::uint32_t> hash_codes;
  HashScratch hash;
};

}  // namespace gleaner

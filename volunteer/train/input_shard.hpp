// The rows of one input shard: weights from each feature (and, last, from the bias) to the shard's
// hidden neurons, the optimizer's state, and what has changed since the last commit.
// Different threads may update different rows once `touch` has announced them; everything else is
// for one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/kernels/aligned_vector.hpp"
#include "common/kernels/kernels.hpp"
#include "common/model_config.hpp"
#include "common/result.hpp"
#include "common/shard_map.hpp"
#include "common/shard_rows.hpp"
#include "common/thread_pool.hpp"

namespace gleaner {

class InputShard {
 public:
  // Every row is made now, so that no access has to ask whether it exists.
  InputShard(const ModelConfig& config, const ShardMap& map, ShardId shard, ThreadPool& pool);

  [[nodiscard]] NeuronRange neurons() const { return neurons_; }

  [[nodiscard]] std::size_t width() const { return width_; }

  // Row r begins at weights() + r * width().
  [[nodiscard]] const float* weights() const { return weights_.data(); }

  [[nodiscard]] float* row(std::uint32_t row) { return weights_.data() + row * width_; }

  // Asks for the row's cache lines ahead of their use.
  void prefetch(std::uint32_t row) const;

  [[nodiscard]] float& state(std::uint32_t row) { return states_[row]; }

  // Announces that these rows will change. Must come before their first change in a round.
  void touch(std::span<const std::uint32_t> rows);
  // Keeps the row's committed values, if `touch` has just met it for the first time in this round.
  // To be called once for each row touched, before it is changed.
  void keep_committed(std::uint32_t row);

  Result<void> load(const ShardRows& rows);
  std::vector<SparseUpdate> commit(ThreadPool& pool, const Kernels& kernels);

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  static constexpr std::uint32_t kUntouched = ~std::uint32_t{0};

  [[nodiscard]] std::span<float> committed(std::uint32_t slot) {
    return std::span(committed_).subspan(slot * width_, width_);
  }

  NeuronRange neurons_;
  std::size_t width_;
  AlignedVector<float> weights_;
  std::vector<float> states_;
  // Place of each row in `touched_`, or kUntouched.
  std::vector<std::uint32_t> slots_;
  std::vector<std::uint32_t> touched_;
  AlignedVector<float> committed_;  // touched_.size() rows: their values at the last commit
  std::size_t kept_before_ = 0;     // touched_ rows below this have their committed values kept
};

}  // namespace gleaner

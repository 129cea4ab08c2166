// The rows of one input shard: weights from each feature, and last from the bias, to the shard's
// hidden units; the optimizer's state; and copies of the rows changed since the last commit.
// Different threads may update different rows after touch(); everything else is for one thread at a
// time.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "common/model/model_config.hpp"
#include "common/model/shard_map.hpp"
#include "common/model/shard_rows.hpp"
#include "common/result.hpp"
#include "common/thread_pool.hpp"
#include "common/train/aligned_vector.hpp"
#include "common/train/kernels.hpp"

namespace gleaner {

class InputShard {
 public:
  // All rows are allocated here, so that no access has to ask whether a row exists. The shard can
  // be stepped back by up to `commits_kept` commits.
  InputShard(const ModelConfig& config, const ShardMap& map, ShardId shard, ThreadPool& pool,
             std::uint32_t commits_kept = 0);

  [[nodiscard]] NeuronRange neurons() const { return neurons_; }

  [[nodiscard]] std::size_t width() const { return width_; }

  // Row r begins at weights() + r * width().
  [[nodiscard]] const float* weights() const { return weights_.data(); }

  [[nodiscard]] float* row(std::uint32_t row) { return weights_.data() + row * width_; }

  // Fetches the row's cache lines before they are used.
  void prefetch(std::uint32_t row) const;

  [[nodiscard]] float& state(std::uint32_t row) { return states_[row]; }

  // Announces that these rows will change. Must precede their first change in a round.
  void touch(std::span<const std::uint32_t> rows);
  // Copies the row's committed values if this is its first touch() in the round. Must be called
  // once for each touched row, before the row changes.
  void keep_committed(std::uint32_t row);

  Result<void> load(const ShardRows& rows);
  Result<void> load_touched(const ShardRows& rows);
  [[nodiscard]] std::vector<ShardRows> touched_rows() const;
  std::vector<SparseUpdate> commit(ThreadPool& pool, const Kernels& kernels);

  // Undoes changes since the last commit, and the last `commits` commits. Returns false and changes
  // nothing when these commits are not kept any more.
  bool step_back(std::uint32_t commits);
  // The digest of the rows that commits have changed, equal to the store's. Requires no touched
  // row.
  [[nodiscard]] ShardDigest digest(ThreadPool& pool) const;

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  static constexpr std::uint32_t kUntouched = ~std::uint32_t{0};

  // Rows as they were at a commit, in the order in which they were touched after that commit.
  struct Copies {
    std::vector<std::uint32_t> rows;
    AlignedVector<float> values;  // rows x width
    std::vector<float> states;
    std::vector<std::uint8_t> stored;

    void clear();
  };

  [[nodiscard]] std::span<float> committed(std::uint32_t slot) {
    return std::span(open_.values).subspan(slot * width_, width_);
  }

  void put_back(const Copies& copies);
  void end_round();

  // Checks that the rows exist and their lists have the right sizes.
  [[nodiscard]] Result<void> check(const ShardRows& rows) const;

  NeuronRange neurons_;
  std::size_t width_;
  AlignedVector<float> weights_;
  std::vector<float> states_;
  std::vector<std::uint8_t> stored_;  // 1: a commit has changed the row
  std::vector<std::uint32_t> slots_;  // index of each row in open_, or kUntouched
  Copies open_;                       // rows touched since the last commit
  std::size_t kept_before_ = 0;       // rows of open_ below this have their values copied
  std::deque<Copies> closed_;         // of earlier commits, oldest first
  std::uint32_t commits_kept_;
  ShardId shard_;
};

}  // namespace gleaner

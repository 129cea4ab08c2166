// Turns active sets round: from each example's neurons to each neuron's examples, so that a
// neuron's row is loaded once. One thread each; reused, so that a steady state allocates nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/kernels/kernels.hpp"
#include "volunteer/train/output/active_set.hpp"

namespace gleaner {

// Rows of a shard from `begin` up to `end`.
struct RowRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

class PairLists {
 public:
  // The lists of some rows. `sets` are those of a whole batch, in the order of their examples.
  void build(std::span<const ActiveSets> sets, RowRange rows);

  // Rows that some example chose, ascending.
  [[nodiscard]] std::span<const std::uint32_t> rows() const { return {rows_.data(), row_count_}; }

  // Where the pairs of each of rows() end; they begin where those of the one before end.
  [[nodiscard]] std::span<const std::size_t> pair_ends() const {
    return {pair_ends_.data(), row_count_};
  }

  // The examples of each of rows(), ascending, true ones marked; sixteen more are readable.
  [[nodiscard]] const ActivePair* pairs() const { return pairs_.data(); }

  // Pairs of all rows.
  [[nodiscard]] std::uint64_t active() const {
    return row_count_ == 0 ? 0 : pair_ends_[row_count_ - 1];
  }

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  std::vector<std::uint32_t> places_;  // by row: of its next pair
  std::vector<std::uint32_t> rows_;    // the first row_count_ are in use
  std::vector<std::size_t> pair_ends_;
  std::size_t row_count_ = 0;
  std::vector<ActivePair> pairs_;
};

}  // namespace gleaner

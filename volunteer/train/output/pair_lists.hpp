// Turns active sets round: from each example's neurons to each neuron's examples, so that a
// neuron's row is loaded once. One caller at a time; loops run on the pool. Reused, so that a
// steady state allocates nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/kernels/kernels.hpp"
#include "common/thread_pool.hpp"
#include "volunteer/train/output/active_set.hpp"

namespace gleaner {

// Some rows of a shard, which are trained by one thread.
struct RowPart {
  std::size_t shard = 0;          // its place among those held
  std::uint32_t shard_begin = 0;  // the number of its first row
  std::uint32_t begin = 0;        // numbers of the rows
  std::uint32_t end = 0;
};

class PairLists {
 public:
  // The lists of all rows. `sets` are those of a whole batch, in the order of their examples;
  // `parts` ascend, and hold every row that an example chose.
  void build(std::span<const ActiveSets> sets, std::span<const RowPart> parts, ThreadPool& pool);

  // Rows of a part that some example chose, ascending, as the shard numbers them.
  [[nodiscard]] std::span<const std::uint32_t> rows(std::size_t part) const {
    return {rows_.data() + places_[part].row, places_[part].rows};
  }

  // Where in pairs() the pairs of each of rows() end; they begin where those of the one before end.
  [[nodiscard]] std::span<const std::uint32_t> pair_ends(std::size_t part) const {
    return {pair_ends_.data() + places_[part].row, places_[part].rows};
  }

  // The examples of each of rows(), ascending, true ones marked; sixteen more are readable.
  [[nodiscard]] const ActivePair* pairs(std::size_t part) const {
    return pairs_.data() + places_[part].pair;
  }

  // Pairs of all rows of a part.
  [[nodiscard]] std::uint64_t active(std::size_t part) const {
    return places_[part + 1].pair - places_[part].pair;
  }

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  // Where a part's rows and pairs begin, and how many of its rows some example chose.
  struct Place {
    std::size_t row = 0;
    std::size_t rows = 0;
    std::size_t pair = 0;
  };

  // The three passes of a counting sort: of the rows of some sets, of the pairs of a part, and of
  // some sets again.
  void count(const ActiveSets& sets, std::uint32_t* counts) const;
  std::size_t sum(const RowPart& part, std::size_t sets) const;
  void place_part(const RowPart& part, std::size_t sets, Place& place);
  void place_pairs(const ActiveSets& sets, std::uint32_t* places);

  std::uint32_t row_end_ = 0;
  std::vector<std::uint32_t> counts_;  // sets x rows: pairs, then the place of the next one
  std::vector<Place> places_;          // of the parts, and the end
  std::vector<std::uint32_t> rows_;
  std::vector<std::uint32_t> pair_ends_;
  std::vector<ActivePair> pairs_;
};

}  // namespace gleaner

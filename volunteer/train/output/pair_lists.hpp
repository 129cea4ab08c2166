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

// Rows of a part at most: a second cache level holds counters of them.
inline constexpr std::uint32_t kPartRows = 1U << 15;

// Some rows of a shard, which are trained by one thread: whole sections (hash_table.hpp).
struct RowPart {
  std::size_t shard = 0;          // its place among those held
  std::uint32_t shard_begin = 0;  // the number of its first row
  std::uint32_t begin = 0;        // numbers of the rows
  std::uint32_t end = 0;
};

// Appends the parts of a shard, of about equal size: as many as are wanted, if its rows suffice,
// and as many as keep each within kPartRows.
void cut_into_parts(std::size_t shard, std::uint32_t shard_begin, std::uint32_t rows,
                    std::size_t wanted, std::vector<RowPart>& parts);

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

  // Small, since another thread than the one that writes it reads it.
  struct Choice {
    std::uint16_t row = 0;  // counted from its part's first
    ActivePair pair = 0;
  };

  // The choices of the examples of a set, part by part, each in the order of the examples.
  struct ByPart {
    std::vector<Choice> choices;
    std::vector<std::size_t> ends;  // of each part's choices; they begin where the last one's end

    [[nodiscard]] std::span<const Choice> of(std::size_t part) const {
      const std::size_t begin = part == 0 ? 0 : ends[part - 1];
      return {choices.data() + begin, ends[part] - begin};
    }
  };

  // The two passes of a radix sort. By part first: the second pass then counts within a part's
  // rows, which a cache holds, where a layer's do not fit.
  void sort_by_part(const ActiveSets& set, std::span<const RowPart> parts, ByPart& sorted) const;
  void sort_part(std::span<const RowPart> parts, std::size_t part,
                 std::vector<std::uint32_t>& counts);

  std::vector<std::uint32_t> part_by_section_;
  std::vector<ByPart> by_part_;                     // by set
  std::vector<std::vector<std::uint32_t>> counts_;  // by worker: pairs of each row of a part
  std::vector<Place> places_;                       // of the parts, and the end
  std::vector<std::uint32_t> rows_;
  std::vector<std::uint32_t> pair_ends_;
  std::vector<ActivePair> pairs_;
};

}  // namespace gleaner

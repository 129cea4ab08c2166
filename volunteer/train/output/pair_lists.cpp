#include "volunteer/train/output/pair_lists.hpp"

#include <utility>

#include "common/limits.hpp"

namespace gleaner {

static_assert(kBatchExamplesMax <= kPairExampleMask, "an example's position fits a pair");

void PairLists::build(std::span<const ActiveSets> sets, RowRange rows) {
  // A counting sort by row: a row's count becomes the place of its next pair. Rows outside the
  // range come to one place that nobody reads: whether a row is inside cannot be predicted.
  const std::uint32_t count = rows.end - rows.begin;
  const auto place_of = [rows, count](std::uint32_t row) {
    const std::uint32_t place = row - rows.begin;
    return place < count ? place : count;
  };
  places_.assign(count + std::size_t{1}, 0);
  for (const ActiveSets& some : sets) {
    for (const std::uint32_t row : some.all_chosen()) ++places_[place_of(row)];
  }
  // Whether a row is in use cannot be predicted; hence no branch, but a count that may not grow.
  if (rows_.size() <= count) {
    rows_.resize(count + std::size_t{1});
    pair_ends_.resize(rows_.size());
  }
  row_count_ = 0;
  std::uint32_t end = 0;
  for (std::uint32_t place = 0; place < count; ++place) {
    const std::uint32_t pairs = std::exchange(places_[place], end);
    end += pairs;
    rows_[row_count_] = rows.begin + place;
    pair_ends_[row_count_] = end;
    row_count_ += pairs != 0 ? 1 : 0;
  }
  const std::size_t all = end + std::exchange(places_[count], end);
  if (pairs_.size() < all + kLanes) pairs_.resize(all + kLanes);
  for (const ActiveSets& some : sets) {
    for (std::uint32_t example = some.examples().begin; example < some.examples().end; ++example) {
      const std::span<const std::uint32_t> chosen = some.chosen(example);
      const std::size_t trues = some.true_count(example);
      for (std::size_t i = 0; i < chosen.size(); ++i) {
        const std::uint32_t mark = i < trues ? kTruePair : 0;
        pairs_[places_[place_of(chosen[i])]++] = static_cast<ActivePair>(example | mark);
      }
    }
  }
}

std::uint64_t PairLists::memory_bytes() const {
  return (places_.capacity() + rows_.capacity()) * sizeof(std::uint32_t) +
         pair_ends_.capacity() * sizeof(std::size_t) + pairs_.capacity() * sizeof(ActivePair);
}

}  // namespace gleaner

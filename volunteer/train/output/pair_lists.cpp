#include "volunteer/train/output/pair_lists.hpp"

#include <algorithm>
#include <utility>

#include "common/limits.hpp"

namespace gleaner {

static_assert(kBatchExamplesMax <= kPairExampleMask, "an example's position fits a pair");

void PairLists::build(std::span<const ActiveSets> sets, std::span<const RowPart> parts,
                      ThreadPool& pool) {
  row_end_ = parts.empty() ? 0 : parts.back().end;
  counts_.resize(std::max(counts_.size(), sets.size() * row_end_));
  rows_.resize(std::max<std::size_t>(rows_.size(), row_end_ + parts.size()));
  pair_ends_.resize(rows_.size());
  const auto counts_of = [this](std::size_t set) { return counts_.data() + set * row_end_; };
  pool.parallel_for(
      sets.size(), [&](std::size_t set, unsigned /*worker*/) { count(sets[set], counts_of(set)); });
  places_.assign(parts.size() + 1, {});
  pool.parallel_for(parts.size(), [&](std::size_t part, unsigned /*worker*/) {
    places_[part + 1].pair = sum(parts[part], sets.size());
  });
  for (std::size_t part = 0; part < parts.size(); ++part) {
    places_[part + 1].pair += places_[part].pair;
    // Room for one row more than a part has: see place_part().
    places_[part].row = parts[part].begin + part;
  }
  const std::size_t pairs = places_.back().pair;
  pairs_.resize(std::max(pairs_.size(), pairs + kLanes));
  pool.parallel_for(parts.size(), [&](std::size_t part, unsigned /*worker*/) {
    place_part(parts[part], sets.size(), places_[part]);
  });
  pool.parallel_for(sets.size(), [&](std::size_t set, unsigned /*worker*/) {
    place_pairs(sets[set], counts_of(set));
  });
}

void PairLists::count(const ActiveSets& sets, std::uint32_t* counts) const {
  std::fill_n(counts, row_end_, 0U);
  for (const std::uint32_t row : sets.all_chosen()) ++counts[row];
}

std::size_t PairLists::sum(const RowPart& part, std::size_t sets) const {
  std::size_t pairs = 0;
  for (std::size_t set = 0; set < sets; ++set) {
    const std::uint32_t* const counts = counts_.data() + set * row_end_;
    for (std::uint32_t row = part.begin; row < part.end; ++row) pairs += counts[row];
  }
  return pairs;
}

void PairLists::place_part(const RowPart& part, std::size_t sets, Place& place) {
  std::uint32_t* const rows = rows_.data() + place.row;
  std::uint32_t* const ends = pair_ends_.data() + place.row;
  std::size_t count = 0;
  auto next = static_cast<std::uint32_t>(place.pair);
  for (std::uint32_t row = part.begin; row < part.end; ++row) {
    const std::uint32_t begin = next;
    for (std::size_t set = 0; set < sets; ++set) {
      next += std::exchange(counts_[set * row_end_ + row], next);
    }
    // Whether a row is in use cannot be predicted; hence no branch, but a count that may not grow.
    rows[count] = row - part.shard_begin;
    ends[count] = next - static_cast<std::uint32_t>(place.pair);
    count += next != begin ? 1 : 0;
  }
  place.rows = count;
}

void PairLists::place_pairs(const ActiveSets& sets, std::uint32_t* places) {
  for (std::uint32_t example = sets.examples().begin; example < sets.examples().end; ++example) {
    const std::span<const std::uint32_t> chosen = sets.chosen(example);
    const std::size_t trues = sets.true_count(example);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const std::uint32_t mark = i < trues ? kTruePair : 0;
      pairs_[places[chosen[i]]++] = static_cast<ActivePair>(example | mark);
    }
  }
}

std::uint64_t PairLists::memory_bytes() const {
  return (counts_.capacity() + rows_.capacity() + pair_ends_.capacity()) * sizeof(std::uint32_t) +
         pairs_.capacity() * sizeof(ActivePair);
}

}  // namespace gleaner

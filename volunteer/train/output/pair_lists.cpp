#include "volunteer/train/output/pair_lists.hpp"

#include <algorithm>
#include <utility>

#include "common/check.hpp"
#include "common/limits.hpp"
#include "volunteer/train/output/hash_table.hpp"

namespace gleaner {

static_assert(kBatchExamplesMax <= kPairExampleMask, "an example's position fits a pair");
static_assert(kPartRows <= 1U << 16, "a row's place in its part fits a choice");

void cut_into_parts(std::size_t shard, std::uint32_t shard_begin, std::uint32_t rows,
                    std::size_t wanted, std::vector<RowPart>& parts) {
  const std::uint64_t sections = (rows + HashTables::kSection - 1) / HashTables::kSection;
  const std::uint64_t count = std::min<std::uint64_t>(
      std::max<std::uint64_t>(wanted, (rows + kPartRows - 1) / kPartRows), sections);
  std::uint32_t begin = 0;
  for (std::uint64_t part = 1; part <= count; ++part) {
    const auto end = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(rows, sections * part / count * HashTables::kSection));
    parts.push_back({shard, shard_begin, shard_begin + begin, shard_begin + end});
    begin = end;
  }
}

void PairLists::build(std::span<const ActiveSets> sets, std::span<const RowPart> parts,
                      ThreadPool& pool) {
  const std::uint32_t row_end = parts.empty() ? 0 : parts.back().end;
  part_by_section_.resize((row_end + HashTables::kSection - 1) / HashTables::kSection);
  for (std::size_t part = 0; part < parts.size(); ++part) {
    GLEANER_CHECK(parts[part].end - parts[part].begin <= kPartRows);
    std::fill(part_by_section_.begin() + parts[part].begin / HashTables::kSection,
              part_by_section_.begin() +
                  (parts[part].end + HashTables::kSection - 1) / HashTables::kSection,
              static_cast<std::uint32_t>(part));
  }
  by_part_.resize(sets.size());
  pool.parallel_for(sets.size(), [&](std::size_t set, unsigned /*worker*/) {
    sort_by_part(sets[set], parts, by_part_[set]);
  });
  places_.assign(parts.size() + 1, {});
  for (std::size_t part = 0; part < parts.size(); ++part) {
    // Room for one row more than a part has: see sort_part().
    places_[part].row = parts[part].begin + part;
    places_[part + 1].pair = places_[part].pair;
    for (const ByPart& set : by_part_) places_[part + 1].pair += set.of(part).size();
  }
  rows_.resize(std::max<std::size_t>(rows_.size(), row_end + parts.size()));
  pair_ends_.resize(rows_.size());
  pairs_.resize(std::max(pairs_.size(), places_.back().pair + kLanes));
  counts_.resize(pool.threads());
  pool.parallel_for(parts.size(), [&](std::size_t part, unsigned worker) {
    sort_part(parts, part, counts_[worker]);
  });
}

void PairLists::sort_by_part(const ActiveSets& set, std::span<const RowPart> parts,
                             ByPart& sorted) const {
  const auto part_of = [this](std::uint32_t row) {
    return part_by_section_[row / HashTables::kSection];
  };
  std::vector<std::size_t>& next = sorted.ends;
  next.assign(parts.size() + 1, 0);
  for (const std::uint32_t row : set.all_chosen()) ++next[part_of(row) + std::size_t{1}];
  for (std::size_t part = 0; part < parts.size(); ++part) next[part + 1] += next[part];
  sorted.choices.resize(std::max(sorted.choices.size(), set.all_chosen().size()));
  // Placing moves each part's beginning to its end.
  for (std::uint32_t example = set.examples().begin; example < set.examples().end; ++example) {
    const std::span<const std::uint32_t> chosen = set.chosen(example);
    const std::size_t trues = set.true_count(example);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const std::uint32_t part = part_of(chosen[i]);
      const std::uint32_t mark = i < trues ? kTruePair : 0;
      sorted.choices[next[part]++] = {static_cast<std::uint16_t>(chosen[i] - parts[part].begin),
                                      static_cast<ActivePair>(example | mark)};
    }
  }
}

void PairLists::sort_part(std::span<const RowPart> parts, std::size_t part,
                          std::vector<std::uint32_t>& counts) {
  const RowPart& own = parts[part];
  Place& place = places_[part];
  counts.assign(own.end - own.begin, 0);
  for (const ByPart& set : by_part_) {
    for (const Choice& choice : set.of(part)) ++counts[choice.row];
  }
  std::uint32_t* const rows = rows_.data() + place.row;
  std::uint32_t* const ends = pair_ends_.data() + place.row;
  ActivePair* const pairs = pairs_.data() + place.pair;
  const std::uint32_t first = own.begin - own.shard_begin;
  std::size_t used = 0;
  std::uint32_t next = 0;
  for (std::uint32_t row = 0; row < counts.size(); ++row) {
    const std::uint32_t begin = next;
    next += std::exchange(counts[row], next);
    // Whether a row is in use cannot be predicted; hence no branch, but a count that may not grow.
    rows[used] = first + row;
    ends[used] = next;
    used += next != begin ? 1 : 0;
  }
  place.rows = used;
  for (const ByPart& set : by_part_) {
    for (const Choice& choice : set.of(part)) pairs[counts[choice.row]++] = choice.pair;
  }
}

std::uint64_t PairLists::memory_bytes() const {
  std::uint64_t bytes = (part_by_section_.capacity() + rows_.capacity() + pair_ends_.capacity()) *
                            sizeof(std::uint32_t) +
                        pairs_.capacity() * sizeof(ActivePair);
  for (const ByPart& set : by_part_) bytes += set.choices.capacity() * sizeof(Choice);
  for (const auto& counts : counts_) bytes += counts.capacity() * sizeof(std::uint32_t);
  return bytes;
}

}  // namespace gleaner

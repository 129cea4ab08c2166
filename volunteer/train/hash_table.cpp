#include "volunteer/train/hash_table.hpp"

#include <algorithm>

#include "common/check.hpp"

namespace gleaner {

HashTables::HashTables(std::uint32_t tables, std::uint32_t hash_bits, std::uint32_t rows)
    : tables_(tables),
      rows_(rows),
      buckets_(std::size_t{1} << hash_bits),
      codes_(std::size_t{tables} * rows),
      offsets_(tables * (buckets_ + 1)),
      entries_(std::size_t{tables} * rows + 1),
      changed_(tables, 1) {}

void HashTables::read_codes(std::uint32_t row, std::span<std::uint32_t> codes) const {
  for (std::size_t table = 0; table < tables_; ++table) codes[table] = codes_[table * rows_ + row];
}

void HashTables::write_codes(std::span<const std::uint32_t> rows,
                             std::span<const std::uint32_t> codes) {
  GLEANER_CHECK(codes.size() == rows.size() * tables_);
  for (const std::uint32_t row : rows) GLEANER_CHECK(row < rows_);
  // Table by table: rows of a block are neighbours there.
  for (std::size_t table = 0; table < tables_; ++table) {
    std::uint32_t* of_table = codes_.data() + table * rows_;
    std::uint32_t differences = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::uint32_t& code = of_table[rows[i]];
      differences |= code ^ codes[i * tables_ + table];
      code = codes[i * tables_ + table];
    }
    if (differences != 0) changed_[table] = 1;
  }
}

void HashTables::write_codes_unmarked(std::uint32_t row, std::span<const std::uint32_t> codes) {
  GLEANER_CHECK(row < rows_ && codes.size() == tables_);
  for (std::size_t table = 0; table < tables_; ++table) codes_[table * rows_ + row] = codes[table];
}

void HashTables::mark_all_changed() {
  std::fill(changed_.begin(), changed_.end(), std::uint8_t{1});
}

void HashTables::rebuild() {
  for (std::size_t table = 0; table < tables_; ++table) {
    if (changed_[table] == 0) continue;
    changed_[table] = 0;
    const std::uint32_t* codes = codes_.data() + table * rows_;
    std::uint32_t* offsets = &offsets_[table * (buckets_ + 1)];
    std::uint32_t* entries = entries_.data() + table * rows_;
    // Counts in offsets[code + 1], so that their running sum is each bucket's beginning.
    std::fill(offsets, offsets + buckets_ + 1, 0u);
    for (std::uint32_t row = 0; row < rows_; ++row) ++offsets[codes[row] + 1];
    for (std::size_t code = 0; code < buckets_; ++code) offsets[code + 1] += offsets[code];
    // Placing moves each beginning to the bucket's end, which is the next one's beginning.
    for (std::uint32_t row = 0; row < rows_; ++row) entries[offsets[codes[row]]++] = row;
    for (std::size_t code = buckets_; code > 0; --code) offsets[code] = offsets[code - 1];
    offsets[0] = 0;
  }
}

std::uint64_t HashTables::memory_bytes() const {
  return (codes_.capacity() + offsets_.capacity() + entries_.capacity()) * sizeof(std::uint32_t);
}

}  // namespace gleaner

#include "volunteer/train/output/hash_table.hpp"

#include <algorithm>
#include <limits>

#include "common/check.hpp"

namespace gleaner {

template <typename Word>
PackedTables<Word>::PackedTables(std::uint32_t tables, std::uint32_t hash_bits, std::uint32_t rows)
    : tables_(tables),
      rows_(rows),
      buckets_(std::size_t{1} << hash_bits),
      codes_(std::size_t{tables} * rows),
      offsets_(tables * (buckets_ + 1)),
      entries_(std::size_t{tables} * rows + 1) {}

template <typename Word>
void PackedTables<Word>::read_codes(std::uint32_t row, std::span<std::uint32_t> codes) const {
  for (std::size_t table = 0; table < tables_; ++table) codes[table] = codes_[table * rows_ + row];
}

template <typename Word>
void PackedTables<Word>::write_codes(std::span<const std::uint32_t> rows,
                                     std::span<const std::uint32_t> codes) {
  GLEANER_CHECK(codes.size() == rows.size() * tables_);
  for (const std::uint32_t row : rows) GLEANER_CHECK(row < rows_);
  // Table by table: rows of a block are neighbours there.
  for (std::size_t table = 0; table < tables_; ++table) {
    Word* of_table = codes_.data() + table * rows_;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      of_table[rows[i]] = static_cast<Word>(codes[i * tables_ + table]);
    }
  }
}

template <typename Word>
void PackedTables<Word>::rebuild(std::uint32_t table) {
  GLEANER_CHECK(table < tables_);
  const Word* codes = codes_.data() + std::size_t{table} * rows_;
  Word* offsets = &offsets_[table * (buckets_ + 1)];
  Word* entries = entries_.data() + std::size_t{table} * rows_;
  // Counts in offsets[code + 1], so that their running sum is each bucket's beginning.
  std::fill(offsets, offsets + buckets_ + 1, Word{0});
  for (std::uint32_t row = 0; row < rows_; ++row) ++offsets[codes[row] + std::size_t{1}];
  for (std::size_t code = 0; code < buckets_; ++code) {
    offsets[code + 1] = static_cast<Word>(offsets[code + 1] + offsets[code]);
  }
  // Placing moves each beginning to the bucket's end, which is the next one's beginning.
  for (std::uint32_t row = 0; row < rows_; ++row) {
    entries[offsets[codes[row]]++] = static_cast<Word>(row);
  }
  for (std::size_t code = buckets_; code > 0; --code) offsets[code] = offsets[code - 1];
  offsets[0] = 0;
}

template <typename Word>
std::uint64_t PackedTables<Word>::memory_bytes() const {
  return (codes_.capacity() + offsets_.capacity() + entries_.capacity()) * sizeof(Word);
}

template class PackedTables<std::uint16_t>;
template class PackedTables<std::uint32_t>;

HashTables::HashTables(std::uint32_t tables, std::uint32_t hash_bits, std::uint32_t rows)
    : packed_(pack(tables, hash_bits, rows)) {}

bool HashTables::is_narrow(std::uint32_t hash_bits, std::uint64_t rows) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint16_t>::max();
  return (std::uint64_t{1} << hash_bits) - 1 <= kMost && rows <= kMost;
}

HashTables::Packed HashTables::pack(std::uint32_t tables, std::uint32_t hash_bits,
                                    std::uint32_t rows) {
  if (is_narrow(hash_bits, rows)) return PackedTables<std::uint16_t>(tables, hash_bits, rows);
  return PackedTables<std::uint32_t>(tables, hash_bits, rows);
}

void HashTables::read_codes(std::uint32_t row, std::span<std::uint32_t> codes) const {
  visit([&](const auto& packed) { packed.read_codes(row, codes); });
}

void HashTables::write_codes(std::span<const std::uint32_t> rows,
                             std::span<const std::uint32_t> codes) {
  std::visit([&](auto& packed) { packed.write_codes(rows, codes); }, packed_);
}

void HashTables::rebuild(std::uint32_t table) {
  std::visit([table](auto& packed) { packed.rebuild(table); }, packed_);
}

void HashTables::rebuild() {
  for (std::uint32_t table = 0; table < tables(); ++table) rebuild(table);
}

std::vector<std::uint32_t> HashTables::bucket(std::uint32_t table, std::uint32_t code) const {
  return visit([&](const auto& packed) {
    const auto rows = packed.bucket(table, code);
    return std::vector<std::uint32_t>(rows.begin(), rows.end());
  });
}

std::uint64_t HashTables::memory_bytes() const {
  return visit([](const auto& packed) { return packed.memory_bytes(); });
}

std::uint64_t HashTables::bytes(std::uint32_t tables, std::uint32_t hash_bits, std::uint64_t rows) {
  const std::uint64_t word =
      is_narrow(hash_bits, rows) ? sizeof(std::uint16_t) : sizeof(std::uint32_t);
  return tables * (2 * rows + (std::uint64_t{1} << hash_bits)) * word;
}

}  // namespace gleaner

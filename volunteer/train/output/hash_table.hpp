// The L hash tables over a shard's rows, packed: each table is an array of offsets, one a bucket,
// and the rows sorted by (bucket, row). A table is a pure function of the rows' codes, which are
// what is stored and committed.
//
// Invariant: after a rebuild(), every row stands exactly once in the table, in its code's bucket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "common/kernels/aligned_vector.hpp"

namespace gleaner {

// Tables whose codes and numbers of rows fit `Word`. A bucket comes from memory, so its bytes are
// its time.
template <typename Word>
class PackedTables {
 public:
  PackedTables(std::uint32_t tables, std::uint32_t hash_bits, std::uint32_t rows);

  [[nodiscard]] std::uint32_t tables() const { return tables_; }

  // As of HashTables.
  void read_codes(std::uint32_t row, std::span<std::uint32_t> codes) const;
  void write_codes(std::span<const std::uint32_t> rows, std::span<const std::uint32_t> codes);
  void rebuild(std::uint32_t table);

  // Rows whose code in `table` is `code`, ascending.
  [[nodiscard]] std::span<const Word> bucket(std::uint32_t table, std::uint32_t code) const {
    const Word* offsets = &offsets_[table * (buckets_ + 1)];
    const std::size_t begin = offsets[code];
    return {&entries_[std::size_t{table} * rows_ + begin], offsets[code + std::size_t{1}] - begin};
  }

  // Fetches the bounds of all buckets, as long as they leave room in a second cache level: in
  // order, which memory does many times as fast as one by one.
  void fetch_bounds() const {
    constexpr std::size_t kLine = 64 / sizeof(Word);
    constexpr std::size_t kMost = (std::size_t{512} << 10) / sizeof(Word);
    if (offsets_.size() > kMost) return;
    for (std::size_t i = 0; i < offsets_.size(); i += kLine) __builtin_prefetch(&offsets_[i]);
  }

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  std::uint32_t tables_;
  std::uint32_t rows_;
  std::size_t buckets_;
  AlignedVector<Word> codes_;    // tables x rows
  AlignedVector<Word> offsets_;  // tables x (buckets + 1)
  AlignedVector<Word> entries_;  // tables x rows, and one more so that &entries_[i] is valid
};

class HashTables {
 public:
  // `tables` may be 0: then there is nothing to hold.
  HashTables(std::uint32_t tables, std::uint32_t hash_bits, std::uint32_t rows);

  // What `look` makes of the PackedTables that these are.
  template <typename Look>
  decltype(auto) visit(Look&& look) const {
    return std::visit(std::forward<Look>(look), packed_);
  }

  [[nodiscard]] std::uint32_t tables() const {
    return visit([](const auto& packed) { return packed.tables(); });
  }

  // Copies a row's codes to `codes` (one a table).
  void read_codes(std::uint32_t row, std::span<std::uint32_t> codes) const;
  // Replaces the codes of some rows, rows x tables, each below 2^hash_bits; several threads may do
  // so with different rows. The tables are stale until they are rebuilt.
  void write_codes(std::span<const std::uint32_t> rows, std::span<const std::uint32_t> codes);

  // Sorts the rows into the buckets of a table; several threads may do so with different tables.
  void rebuild(std::uint32_t table);
  // The same for all tables.
  void rebuild();

  // A copy of a bucket. Loops over buckets are faster within visit().
  [[nodiscard]] std::vector<std::uint32_t> bucket(std::uint32_t table, std::uint32_t code) const;

  [[nodiscard]] std::uint64_t memory_bytes() const;
  // Of tables of this shape.
  static std::uint64_t bytes(std::uint32_t tables, std::uint32_t hash_bits, std::uint64_t rows);

 private:
  using Packed = std::variant<PackedTables<std::uint16_t>, PackedTables<std::uint32_t>>;

  static bool is_narrow(std::uint32_t hash_bits, std::uint64_t rows);
  static Packed pack(std::uint32_t tables, std::uint32_t hash_bits, std::uint32_t rows);

  Packed packed_;
};

}  // namespace gleaner

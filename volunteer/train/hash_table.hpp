// The L hash tables over a shard's rows, packed: each table is an array of offsets, one a bucket,
// and the rows sorted by (bucket, row). A table is a pure function of the rows' codes, which are
// what is stored and committed.
//
// Invariant: after rebuild(), every row stands exactly once in each table, in its code's bucket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/kernels/aligned_vector.hpp"

namespace gleaner {

class HashTables {
 public:
  // `tables` may be 0: then there is nothing to hold.
  HashTables(std::uint32_t tables, std::uint32_t hash_bits, std::uint32_t rows);

  [[nodiscard]] std::uint32_t tables() const { return tables_; }

  // Copies a row's codes to `codes` (one a table).
  void read_codes(std::uint32_t row, std::span<std::uint32_t> codes) const;
  // Replaces the codes of some rows, rows x tables, each below 2^hash_bits. The tables in which a
  // code changed are rebuilt by the next rebuild() and are stale until then.
  void write_codes(std::span<const std::uint32_t> rows, std::span<const std::uint32_t> codes);

  // The same for different rows from several threads at once: marks nothing, so that a
  // mark_all_changed() must follow.
  void write_codes_unmarked(std::uint32_t row, std::span<const std::uint32_t> codes);
  void mark_all_changed();

  // Sorts the rows of changed tables into their buckets.
  void rebuild();

  // Rows whose code in `table` is `code`, ascending.
  [[nodiscard]] std::span<const std::uint32_t> bucket(std::uint32_t table,
                                                      std::uint32_t code) const {
    const std::uint32_t* offsets = &offsets_[table * (buckets_ + 1)];
    return {&entries_[std::size_t{table} * rows_ + offsets[code]],
            offsets[code + 1] - offsets[code]};
  }

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  std::uint32_t tables_;
  std::uint32_t rows_;
  std::size_t buckets_;
  AlignedVector<std::uint32_t> codes_;    // tables x rows
  AlignedVector<std::uint32_t> offsets_;  // tables x (buckets + 1)
  // tables x rows, and one more so that &entries_[i] is valid
  AlignedVector<std::uint32_t> entries_;
  std::vector<std::uint8_t> changed_;  // tables
};

}  // namespace gleaner

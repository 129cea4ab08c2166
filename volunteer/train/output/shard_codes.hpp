// The hash codes of a shard's rows, one a table: what is stored and committed, and what the hash
// tables are made of. Words of 16 bits where they hold a code, as a pass over them comes from
// memory.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <variant>

#include "common/kernels/aligned_vector.hpp"

namespace gleaner {

class ShardCodes {
 public:
  // `tables` may be 0: then there is nothing to hold.
  ShardCodes(std::uint32_t tables, std::uint32_t hash_bits, std::uint32_t rows);

  [[nodiscard]] std::uint32_t tables() const { return tables_; }

  [[nodiscard]] std::uint32_t rows() const { return rows_; }

  // Copies a row's codes to `codes` (one a table).
  void read(std::uint32_t row, std::span<std::uint32_t> codes) const;

  // Replaces the codes of some rows, rows x tables, each below 2^hash_bits. Several threads may do
  // so with different rows.
  void write(std::span<const std::uint32_t> rows, std::span<const std::uint32_t> codes);

  // Calls look(codes) with the codes of all rows in a table, as words of their size.
  template <typename Look>
  void visit(std::uint32_t table, Look&& look) const {
    std::visit([&](const auto& codes) { look(codes.data() + std::size_t{table} * rows_); }, codes_);
  }

  [[nodiscard]] std::uint64_t memory_bytes() const;
  // The bytes of the codes of this number of rows.
  static std::uint64_t bytes(std::uint32_t tables, std::uint32_t hash_bits, std::uint64_t rows);

 private:
  std::uint32_t tables_;
  std::uint32_t rows_;
  std::variant<AlignedVector<std::uint16_t>, AlignedVector<std::uint32_t>> codes_;  // tables x rows
};

}  // namespace gleaner

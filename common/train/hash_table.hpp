// The L hash tables over the rows of all held shards, packed: each table is an array with one
// offset per bucket, and the rows sorted by bucket. A table is a pure function of the rows' hash
// codes.  The rows of all shards share one numbering. Each shard's numbers begin at a multiple of
// kSection; numbers between two shards name no row. A bucket holds its rows shard by shard. Within
// a shard, the first row of a bucket depends on the table, so that a walk that ends within a bucket
// does not always meet the same rows. The order of a shard's rows does not depend on which other
// shards are held.  Invariant: after rebuild(), every row stands exactly once in the table, in the
// bucket of its hash code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "common/train/aligned_vector.hpp"

namespace gleaner {

// The hash codes of a shard's rows, one per table. They are stored with the shard, and the hash
// tables are built from them. Codes that fit 16 bits are held in 16 bits, since a pass over them is
// bound by memory.
class ShardCodes {
 public:
  // `tables` may be 0: then the object is empty.
  ShardCodes(std::uint32_t tables, std::uint32_t hash_bits, std::uint32_t rows);

  [[nodiscard]] std::uint32_t tables() const { return tables_; }

  [[nodiscard]] std::uint32_t rows() const { return rows_; }

  // Copies a row's hash codes to `codes` (one per table).
  void read(std::uint32_t row, std::span<std::uint32_t> codes) const;

  // Replaces the hash codes of some rows. `codes` is rows x tables, each below 2^hash_bits. Several
  // threads may write different rows.
  void write(std::span<const std::uint32_t> rows, std::span<const std::uint32_t> codes);

  // Calls look(codes) with the hash codes of all rows in a table, as 16-bit or 32-bit words.
  template <typename Look>
  void visit(std::uint32_t table, Look&& look) const {
    std::visit([&](const auto& codes) { look(codes.data() + std::size_t{table} * rows_); }, codes_);
  }

  [[nodiscard]] std::uint64_t memory_bytes() const;
  // The bytes that the hash codes of `rows` rows take.
  static std::uint64_t bytes(std::uint32_t tables, std::uint32_t hash_bits, std::uint64_t rows);

 private:
  std::uint32_t tables_;
  std::uint32_t rows_;
  std::variant<AlignedVector<std::uint16_t>, AlignedVector<std::uint32_t>> codes_;  // tables x rows
};

// Tables whose row numbers fit `Word`. Reading a bucket is bound by memory, so small words are
// fast.
template <typename Word>
class PackedTables {
 public:
  PackedTables(std::uint32_t tables, std::uint32_t hash_bits, std::uint32_t rows);

  [[nodiscard]] std::uint32_t tables() const { return tables_; }

  // Rows whose code in `table` is `code`.
  [[nodiscard]] std::span<const Word> bucket(std::uint32_t table, std::uint32_t code) const {
    const std::uint32_t* offsets = &offsets_[table * (buckets_ + 1)];
    const std::size_t begin = offsets[code];
    return {&entries_[std::size_t{table} * rows_ + begin], offsets[code + std::size_t{1}] - begin};
  }

  // Fetches the bounds of all buckets, if they leave room in the second cache level. Memory
  // delivers them many times as fast in order as one by one.
  void fetch_bounds() const {
    constexpr std::size_t kLine = 64 / sizeof(std::uint32_t);
    constexpr std::size_t kMost = (std::size_t{512} << 10) / sizeof(std::uint32_t);
    if (offsets_.size() > kMost) return;
    for (std::size_t i = 0; i < offsets_.size(); i += kLine) __builtin_prefetch(&offsets_[i]);
  }

  void rebuild(std::uint32_t table, std::span<const ShardCodes* const> shards,
               std::span<const std::uint32_t> begins);

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  std::uint32_t tables_;
  std::uint32_t rows_;
  std::size_t buckets_;
  AlignedVector<std::uint32_t> offsets_;  // tables x (buckets + 1)
  AlignedVector<Word> entries_;  // tables x rows, and one more so that &entries_[i] is valid
};

class HashTables {
 public:
  // A section is kSection consecutive row numbers; all rows in it belong to one shard.
  static constexpr std::uint32_t kSection = 64;

  // Holds no shards yet. `tables` may be 0: then only the rows are numbered.
  HashTables(std::uint32_t tables, std::uint32_t hash_bits);

  // Holds these shards and numbers their rows. They must live until the next call or as long as the
  // tables. All tables have to be rebuilt afterwards.
  void hold(std::span<const ShardCodes* const> shards);

  // Sorts the rows into the buckets of a table. Several threads may rebuild different tables.
  void rebuild(std::uint32_t table);
  void rebuild();

  [[nodiscard]] std::uint32_t tables() const { return tables_; }

  // The number of the first row of the index-th shard.
  [[nodiscard]] std::uint32_t begin(std::size_t shard) const { return begins_[shard]; }

  // All row numbers are below this.
  [[nodiscard]] std::uint32_t end() const { return begins_.back(); }

  // The index of the shard that the row belongs to.
  [[nodiscard]] std::uint32_t shard_of(std::uint32_t row) const {
    return shards_by_section_[row / kSection];
  }

  // Returns look(tables), where `tables` are the PackedTables in use.
  template <typename Look>
  decltype(auto) visit(Look&& look) const {
    return std::visit(std::forward<Look>(look), packed_);
  }

  // A copy of a bucket. Loops over buckets are faster inside visit().
  [[nodiscard]] std::vector<std::uint32_t> bucket(std::uint32_t table, std::uint32_t code) const;

  [[nodiscard]] std::uint64_t memory_bytes() const;
  // The bytes that tables over `rows` rows take.
  static std::uint64_t bytes(std::uint32_t tables, std::uint32_t hash_bits, std::uint64_t rows);

 private:
  using Packed = std::variant<PackedTables<std::uint16_t>, PackedTables<std::uint32_t>>;

  std::uint32_t tables_;
  std::uint32_t hash_bits_;
  std::vector<const ShardCodes*> shards_;
  std::vector<std::uint32_t> begins_{0};  // where each shard begins, and the end of the last
  std::vector<std::uint16_t> shards_by_section_;
  Packed packed_;
};

}  // namespace gleaner

// The L hash tables over the rows of some shards together, packed: each table is an array of
// offsets, one a bucket, and the rows sorted by bucket. A table is a pure function of the rows'
// codes.
//
// Rows of all shards are numbered through: a shard's begin at a multiple of kSection, and numbers
// between two shards name no row. Within a bucket rows stand shard by shard; those of a shard from
// a place on that depends on the table, so that a walk that ends within a bucket does not always
// meet the same rows. The rows of a shard stand in the same order whichever other shards are here.
//
// Invariant: after a rebuild(), every row stands exactly once in the table, in its code's bucket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "common/train/aligned_vector.hpp"

namespace gleaner {

// The hash codes of a shard's rows, one a table: what is stored and committed, and what the hash
// tables are made of. Words of 16 bits where they hold a code, as a pass over them comes from
// memory.
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

// Tables whose numbers of rows fit `Word`. A bucket comes from memory, so its bytes are its time.
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

  // Fetches the bounds of all buckets, if they leave room in a second cache level. Memory delivers
  // them in order many times as fast as one by one.
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
  // Rows in a section are of one shard.
  static constexpr std::uint32_t kSection = 64;

  // Holds no shards. `tables` may be 0: then only the rows are numbered.
  HashTables(std::uint32_t tables, std::uint32_t hash_bits);

  // Makes these the shards whose rows stand in the tables. They outlive the tables or the next
  // call. All tables have to be rebuilt.
  void hold(std::span<const ShardCodes* const> shards);

  // Sorts the rows into the buckets of a table; several threads may do so with different tables.
  void rebuild(std::uint32_t table);
  // Rebuilds all tables.
  void rebuild();

  [[nodiscard]] std::uint32_t tables() const { return tables_; }

  // The number of the first row of the index-th shard.
  [[nodiscard]] std::uint32_t begin(std::size_t shard) const { return begins_[shard]; }

  // Numbers of rows are below this.
  [[nodiscard]] std::uint32_t end() const { return begins_.back(); }

  // Which shard a row is of.
  [[nodiscard]] std::uint32_t shard_of(std::uint32_t row) const {
    return shards_by_section_[row / kSection];
  }

  // Gives what `look` makes of the PackedTables that these are.
  template <typename Look>
  decltype(auto) visit(Look&& look) const {
    return std::visit(std::forward<Look>(look), packed_);
  }

  // A copy of a bucket. Loops over buckets are faster within visit().
  [[nodiscard]] std::vector<std::uint32_t> bucket(std::uint32_t table, std::uint32_t code) const;

  [[nodiscard]] std::uint64_t memory_bytes() const;
  // The bytes of tables over this number of rows.
  static std::uint64_t bytes(std::uint32_t tables, std::uint32_t hash_bits, std::uint64_t rows);

 private:
  using Packed = std::variant<PackedTables<std::uint16_t>, PackedTables<std::uint32_t>>;

  std::uint32_t tables_;
  std::uint32_t hash_bits_;
  std::vector<const ShardCodes*> shards_;
  std::vector<std::uint32_t> begins_{0};  // of the shards, and the end of the last
  std::vector<std::uint16_t> shards_by_section_;
  Packed packed_;
};

}  // namespace gleaner

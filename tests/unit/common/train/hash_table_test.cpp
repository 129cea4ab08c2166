#include "common/train/hash_table.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <set>

#include "common/counter_random.hpp"

namespace gleaner {
namespace {

// A shard's rows with random codes below 2^bits.
ShardCodes random_codes(Rng& rng, std::uint32_t tables, std::uint32_t bits, std::uint32_t rows) {
  ShardCodes codes(tables, bits, rows);
  std::vector<std::uint32_t> of_row(tables);
  for (std::uint32_t row = 0; row < rows; ++row) {
    for (auto& code : of_row) code = static_cast<std::uint32_t>(rng.next_below(1U << bits));
    codes.write({&row, 1}, of_row);
  }
  return codes;
}

// Rows of a shard in a bucket, in their order, as the shard numbers them.
std::vector<std::uint32_t> rows_of(const HashTables& tables, std::size_t shard, std::uint32_t table,
                                   std::uint32_t code) {
  std::vector<std::uint32_t> rows;
  for (const std::uint32_t row : tables.bucket(table, code)) {
    if (tables.shard_of(row) == shard) rows.push_back(row - tables.begin(shard));
  }
  return rows;
}

}  // namespace

TEST_CASE("hash tables: every row stands once in each table, in its code's bucket", "[tables]") {
  Rng rng(3, Purpose::kTest);
  for (const std::uint32_t rows : {1u, 2u, 63u, 64u, 65u, 200u}) {
    const std::vector<ShardCodes> shards{random_codes(rng, 5, 4, rows), random_codes(rng, 5, 4, 70),
                                         random_codes(rng, 5, 4, rows)};
    const std::array<const ShardCodes*, 3> held{&shards[0], &shards[1], &shards[2]};
    HashTables tables(5, 4);
    tables.hold(held);
    tables.rebuild();
    std::vector<std::uint32_t> read(5);
    for (std::uint32_t table = 0; table < 5; ++table) {
      std::size_t entries = 0;
      for (std::uint32_t code = 0; code < 16; ++code) {
        std::size_t shard_before = 0;
        std::set<std::uint32_t> seen;
        for (const std::uint32_t row : tables.bucket(table, code)) {
          const std::size_t shard = tables.shard_of(row);
          REQUIRE(shard >= shard_before);
          shard_before = shard;
          const std::uint32_t own = row - tables.begin(shard);
          REQUIRE(own < shards[shard].rows());
          shards[shard].read(own, read);
          REQUIRE(read[table] == code);
          REQUIRE(seen.insert(row).second);
        }
        entries += seen.size();
      }
      REQUIRE(entries == 2 * rows + 70);
    }
  }
}

TEST_CASE("hash tables: a shard's rows keep their order whichever other shards are here",
          "[tables]") {
  Rng rng(4, Purpose::kTest);
  const ShardCodes ours = random_codes(rng, 6, 3, 90);
  const ShardCodes other = random_codes(rng, 6, 3, 130);
  HashTables alone(6, 3);
  HashTables shared(6, 3);
  const std::array<const ShardCodes*, 1> one{&ours};
  const std::array<const ShardCodes*, 3> three{&other, &ours, &other};
  alone.hold(one);
  shared.hold(three);
  alone.rebuild();
  shared.rebuild();
  std::set<std::uint32_t> first;
  for (std::uint32_t table = 0; table < 6; ++table) {
    for (std::uint32_t code = 0; code < 8; ++code) {
      const std::vector<std::uint32_t> rows = rows_of(alone, 0, table, code);
      REQUIRE(rows == rows_of(shared, 1, table, code));
      // Ascending from some row on, and round.
      REQUIRE(std::is_sorted_until(rows.begin(), rows.end()) - rows.begin() +
                  std::count_if(rows.begin(), rows.end(),
                                [&](std::uint32_t row) { return row < rows[0]; }) ==
              static_cast<std::ptrdiff_t>(rows.size()));
      if (code == 0 && !rows.empty()) first.insert(rows[0]);
    }
  }
  REQUIRE(first.size() > 2);  // not the same in every table
}

TEST_CASE("hash tables: many rows and long codes take wider words, and nothing else changes",
          "[tables]") {
  struct Shape {
    std::uint32_t bits, rows;
    std::uint64_t entry, code;
  };

  for (const Shape& shape :
       {Shape{16, 65'472, 2, 2}, Shape{16, 65'536, 4, 2}, Shape{17, 100, 2, 4}}) {
    CAPTURE(shape.bits, shape.rows);
    ShardCodes codes(2, shape.bits, shape.rows);
    const std::uint32_t last = (1u << shape.bits) - 1;
    std::vector<std::uint32_t> second(shape.rows);
    for (std::uint32_t row = 0; row < shape.rows; ++row) {
      // The first table has one full bucket, the last one; the second has them all over.
      second[row] = static_cast<std::uint32_t>(mix64(row) & last);
      const std::array<std::uint32_t, 2> of_row{last, second[row]};
      codes.write({&row, 1}, of_row);
    }
    HashTables tables(2, shape.bits);
    const std::array<const ShardCodes*, 1> held{&codes};
    tables.hold(held);
    tables.rebuild();
    std::vector<std::uint32_t> full = tables.bucket(0, last);
    std::ranges::sort(full);
    REQUIRE(full.size() == shape.rows);
    REQUIRE(full.back() == shape.rows - 1);
    REQUIRE(tables.bucket(0, last - 1).empty());
    for (std::uint32_t row = 0; row < shape.rows; row += 997) {
      const std::vector<std::uint32_t> bucket = tables.bucket(1, second[row]);
      REQUIRE(std::ranges::find(bucket, row) != bucket.end());
    }
    REQUIRE(ShardCodes::bytes(2, shape.bits, shape.rows) ==
            2 * shape.code * std::uint64_t{shape.rows});
    REQUIRE(codes.memory_bytes() == ShardCodes::bytes(2, shape.bits, shape.rows));
    const std::uint64_t bytes = HashTables::bytes(2, shape.bits, shape.rows);
    REQUIRE(bytes == 2 * (shape.entry * shape.rows + 4 * std::uint64_t{last + 1}));
    REQUIRE(tables.memory_bytes() >= bytes);
    REQUIRE(tables.memory_bytes() < bytes + 4096);
  }
}

TEST_CASE("hash tables: each table can be rebuilt by itself", "[tables]") {
  ShardCodes codes(2, 3, 4);
  const std::vector<std::vector<std::uint32_t>> of_rows{{1, 7}, {1, 0}, {5, 7}, {0, 2}};
  for (std::uint32_t row = 0; row < 4; ++row) codes.write({&row, 1}, of_rows[row]);
  HashTables tables(2, 3);
  const std::array<const ShardCodes*, 1> held{&codes};
  tables.hold(held);
  tables.rebuild(1);
  REQUIRE(tables.bucket(1, 7).size() == 2);
  REQUIRE(tables.bucket(0, 1).empty());
  tables.rebuild(0);
  REQUIRE(tables.bucket(0, 1).size() == 2);
  const std::uint32_t row = 1;
  codes.write({&row, 1}, of_rows[3]);
  tables.rebuild();
  REQUIRE(tables.bucket(0, 1) == std::vector<std::uint32_t>{0});
}

TEST_CASE("hash tables: none at all are possible", "[tables]") {
  ShardCodes codes(0, 8, 100);
  const std::uint32_t row = 3;
  codes.write({&row, 1}, {});
  HashTables tables(0, 8);
  const std::array<const ShardCodes*, 1> held{&codes};
  tables.hold(held);
  tables.rebuild();
  REQUIRE(tables.tables() == 0);
  REQUIRE(tables.end() == 128);
}

}  // namespace gleaner

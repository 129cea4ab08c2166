#include "volunteer/train/output/hash_table.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "common/counter_random.hpp"

namespace gleaner {
namespace {

// Checks every table against the codes that were written.
void require_sorted(const HashTables& tables, std::uint32_t bits,
                    const std::vector<std::vector<std::uint32_t>>& codes) {
  for (std::uint32_t table = 0; table < tables.tables(); ++table) {
    std::size_t entries = 0;
    for (std::uint32_t code = 0; code < (1u << bits); ++code) {
      const auto bucket = tables.bucket(table, code);
      for (std::size_t i = 0; i < bucket.size(); ++i) {
        REQUIRE(bucket[i] < codes.size());
        REQUIRE(codes[bucket[i]][table] == code);
        if (i > 0) REQUIRE(bucket[i] > bucket[i - 1]);
      }
      entries += bucket.size();
    }
    REQUIRE(entries == codes.size());
  }
}

}  // namespace

TEST_CASE("hash tables: every row stands once in each table, in its code's bucket", "[tables]") {
  Rng rng(3, Purpose::kTest);
  for (const std::uint32_t rows : {1u, 2u, 63u, 200u}) {
    HashTables tables(5, 4, rows);
    std::vector<std::vector<std::uint32_t>> codes(rows, std::vector<std::uint32_t>(5));
    for (int round = 0; round < 6; ++round) {
      for (std::uint32_t row = 0; row < rows; ++row) {
        if (round > 0 && rng.chance(2, 3)) continue;
        // Only some tables change, as with small steps of the weights.
        for (auto& code : codes[row]) {
          if (round == 0 || rng.chance(1, 4)) code = static_cast<std::uint32_t>(rng.next_below(16));
        }
        tables.write_codes({&row, 1}, codes[row]);
      }
      tables.rebuild();
      require_sorted(tables, 4, codes);
    }
    std::vector<std::uint32_t> read(5);
    tables.read_codes(rows - 1, read);
    REQUIRE(read == codes[rows - 1]);
  }
}

TEST_CASE("hash tables: many rows and long codes take wider words, and nothing else changes",
          "[tables]") {
  struct Shape {
    std::uint32_t bits, rows;
    std::uint64_t word;
  };

  for (const Shape& shape : {Shape{16, 65'535, 2}, Shape{16, 65'536, 4}, Shape{17, 100, 4}}) {
    CAPTURE(shape.bits, shape.rows);
    HashTables tables(2, shape.bits, shape.rows);
    std::vector<std::vector<std::uint32_t>> codes(shape.rows, std::vector<std::uint32_t>(2));
    const std::uint32_t last = (1u << shape.bits) - 1;
    for (std::uint32_t row = 0; row < shape.rows; ++row) {
      // The first table has one full bucket, the last one; the second has them all over.
      codes[row] = {last, static_cast<std::uint32_t>(mix64(row) & last)};
      tables.write_codes({&row, 1}, codes[row]);
    }
    tables.rebuild();
    const std::vector<std::uint32_t> full = tables.bucket(0, last);
    REQUIRE(full.size() == shape.rows);
    REQUIRE(full.back() == shape.rows - 1);
    REQUIRE(tables.bucket(0, last - 1).empty());
    for (std::uint32_t row = 0; row < shape.rows; row += 997) {
      const std::vector<std::uint32_t> bucket = tables.bucket(1, codes[row][1]);
      REQUIRE(std::binary_search(bucket.begin(), bucket.end(), row));
      std::vector<std::uint32_t> read(2);
      tables.read_codes(row, read);
      REQUIRE(read == codes[row]);
    }
    const std::uint64_t bytes = HashTables::bytes(2, shape.bits, shape.rows);
    REQUIRE(bytes == 2 * shape.word * (2 * std::uint64_t{shape.rows} + last + 1));
    REQUIRE(tables.memory_bytes() >= bytes);
    REQUIRE(tables.memory_bytes() < bytes + 64);
  }
}

TEST_CASE("hash tables: each table can be rebuilt by itself", "[tables]") {
  HashTables tables(2, 3, 4);
  std::vector<std::vector<std::uint32_t>> codes{{1, 7}, {1, 0}, {5, 7}, {0, 2}};
  for (std::uint32_t row = 0; row < 4; ++row) tables.write_codes({&row, 1}, codes[row]);
  tables.rebuild(1);
  REQUIRE(tables.bucket(1, 7) == std::vector<std::uint32_t>{0, 2});
  tables.rebuild(0);
  require_sorted(tables, 3, codes);
}

TEST_CASE("hash tables: none at all are possible", "[tables]") {
  HashTables tables(0, 8, 100);
  const std::uint32_t row = 3;
  tables.write_codes({&row, 1}, {});
  tables.rebuild();
  REQUIRE(tables.tables() == 0);
}

}  // namespace gleaner

#include "schema/compact_lists.hpp"

#include <bit>
#include <catch2/catch.hpp>

#include "common/counter_random.hpp"
#include "common/limits.hpp"

namespace gleaner {
namespace {

constexpr const char* kField = "list";

std::string error_of_counts(const Bytes& packed, std::size_t count_max = 100) {
  try {
    unpack_counts(kField, packed, count_max);
  } catch (const Malformed& malformed) {
    return malformed.what;
  }
  return {};
}

std::string error_of_positives(const Bytes& packed) {
  try {
    unpack_positives(kField, packed);
  } catch (const Malformed& malformed) {
    return malformed.what;
  }
  return {};
}

std::string error_of_codes(const Bytes& packed, std::size_t rows) {
  try {
    unpack_codes(kField, packed, rows);
  } catch (const Malformed& malformed) {
    return malformed.what;
  }
  return {};
}

}  // namespace

TEST_CASE("counts: numbers take as many bytes as they need", "[compact]") {
  const std::vector<std::uint32_t> counts{0, 127, 128, 16'383, 16'384, 0xffffffffu};
  const Bytes packed = pack_counts(counts);
  REQUIRE(packed.size() == 1 + 1 + 2 + 2 + 3 + 5);
  REQUIRE(unpack_counts(kField, packed, 6) == counts);
  REQUIRE(error_of_counts(packed, 5) == "list: 6 entries, at most 5");
}

TEST_CASE("counts: numbers that are cut off, padded or too large are refused", "[compact]") {
  REQUIRE(error_of_counts({0x80}) == "list: cut off within a number");
  REQUIRE(error_of_counts({0x80, 0x00}) == "list: a number longer than needed");
  REQUIRE(error_of_counts({0xff, 0xff, 0xff, 0xff, 0x1f}) == "list: a number beyond 32 bits");
  REQUIRE(error_of_counts({0xff, 0xff, 0xff, 0xff, 0xff, 0x01}) == "list: a number beyond 32 bits");
  REQUIRE(error_of_counts({0xff, 0xff, 0xff, 0xff, 0x0f}).empty());
}

TEST_CASE("positives: the bytes are pinned", "[compact]") {
  const Positives positives{{0, 2, 2, 3}, {3, 204, 0}};
  const Bytes packed = pack_positives(positives);
  REQUIRE(packed == Bytes{2, 3, 0xc8, 0x01, 0, 1, 0});
  REQUIRE(unpack_positives(kField, packed) == positives);
}

TEST_CASE("positives: labels beyond the limits are refused", "[compact]") {
  REQUIRE(error_of_positives(Bytes(kBatchExamplesMax, 0)).empty());
  REQUIRE(error_of_positives(Bytes(kBatchExamplesMax + 1, 0)) == "list: more than 4096 examples");
  REQUIRE(error_of_positives({0x81, 0x80, 0x80, 0x02}) == "list: more than 4194304 labels");
  REQUIRE(error_of_positives({2, 0xff, 0xc1, 0xd7, 0x2f, 0}) ==
          "list: 100000000 is beyond 100000000");
  REQUIRE(error_of_positives({2, 5}) == "list: cut off within a number");
}

TEST_CASE("levels: small ones take fewer bytes on the wire", "[compact]") {
  // As in a commit: most are near zero.
  std::vector<std::int8_t> levels(std::size_t{500} * 64);
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const std::uint64_t random = mix64(i);
    levels[i] = static_cast<std::int8_t>(std::popcount(random & 0x3fff) - 7);
  }
  const Bytes plain = pack_levels(levels, 500);
  const Bytes small = pack_levels_small(levels, 500);
  REQUIRE(plain.size() == 2 + levels.size() / 2);
  REQUIRE(small.size() < plain.size() * 4 / 5);
  REQUIRE(unpack_levels(kField, plain, 500) == levels);
  REQUIRE(unpack_levels(kField, small, 500) == levels);
  // Where nothing can be gained they are as they were.
  const std::vector<std::int8_t> few{7, -7, 0, 1};
  REQUIRE(pack_levels_small(few, 2) == pack_levels(few, 2));
  REQUIRE(pack_levels_small({}, 0).empty());
}

TEST_CASE("levels: compressed ones that lie are refused", "[compact]") {
  const std::vector<std::int8_t> levels(std::size_t{500} * 64, 1);
  const Bytes small = pack_levels_small(levels, 500);
  const auto error_of = [](const Bytes& packed, std::size_t rows) -> std::string {
    try {
      unpack_levels(kField, packed, rows);
    } catch (const Malformed& malformed) {
      return malformed.what;
    }
    return "";
  };
  REQUIRE(error_of(small, 500).empty());
  REQUIRE(error_of(small, 501) == "list: 16000 bytes for 501 rows of 64 levels");
  REQUIRE(error_of(small, 499).find("list: ") == 0);  // more than these rows have
  REQUIRE(error_of(small, 10'000'000).find("list: 10000000 rows") == 0);
  for (std::size_t size = 0; size < small.size(); ++size) {
    Bytes cut(small.begin(), small.begin() + static_cast<std::ptrdiff_t>(size));
    REQUIRE((size == 0 ? std::string("list: ") : error_of(cut, 500)).find("list: ") == 0);
  }
  for (std::size_t i = 0; i < small.size(); ++i) {
    Bytes bad = small;
    bad[i] ^= 0x55;
    error_of(bad, 500);  // whatever it says, it ends
  }
}

TEST_CASE("codes: the bytes are pinned", "[compact]") {
  const std::vector<std::uint32_t> codes{1, 2, 3, 4};
  const Bytes packed = pack_codes(codes, 2);
  REQUIRE(packed == Bytes{3, 2, 0, 0b11010001, 0b1000});
  REQUIRE(unpack_codes(kField, packed, 2) == codes);
}

TEST_CASE("codes: every width survives", "[compact]") {
  for (unsigned width = 0; width <= 32; ++width) {
    std::vector<std::uint32_t> codes(15);
    codes[7] = width == 0 ? 0 : 0xffffffffu >> (32 - width);
    REQUIRE(unpack_codes(kField, pack_codes(codes, 5), 5) == codes);
  }
}

TEST_CASE("codes: what packing cannot have written is refused", "[compact]") {
  REQUIRE(error_of_codes({3, 2}, 2) == "list: cut off within the header");
  REQUIRE(error_of_codes({0, 2, 0}, 2) == "list: width 0");
  REQUIRE(error_of_codes({33, 1, 0, 0, 0, 0, 0, 0}, 1) == "list: width 33");
  REQUIRE(error_of_codes({1, 0, 0}, 2) == "list: 0 codes a row");
  REQUIRE(error_of_codes({1, 1, 4, 0}, 1) == "list: 1025 codes a row");
  REQUIRE(error_of_codes({1, 1, 0}, 0) == "list: there are codes but no rows");
  REQUIRE(error_of_codes({3, 2, 0, 0xd1, 0x08, 0}, 2) == "list: 3 bytes for 4 codes of 3 bits");
  REQUIRE(error_of_codes({3, 2, 0, 0x11, 0x00}, 2).find("list: width 3, but") == 0);
  REQUIRE(error_of_codes({3, 2, 0, 0xd1, 0x18}, 2) == "list: the last byte's padding is not zero");
  REQUIRE(error_of_codes({1, 0, 4}, kCodesPerMessageMax / 1024 + 1).find("list: 16385 rows of") ==
          0);
}

}  // namespace gleaner

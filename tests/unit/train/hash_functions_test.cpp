#include <catch2/catch.hpp>
#include <set>

#include "common/counter_random.hpp"
#include "common/lsh/hash_family.hpp"
#include "tests/unit/train/train_fixture.hpp"

namespace gleaner {
namespace {

const Kernels& scalar() {
  return kernels_for(SimdLevel::kScalar);
}

ModelConfig config_of(HashFamilyKind family, std::uint32_t bits, std::uint32_t tables) {
  ModelConfig config = test::small_config();
  config.hash_family = family;
  config.hash_bits = bits;
  config.tables = tables;
  return config;
}

std::vector<std::uint32_t> hash_row(const HashFamily& family, const std::vector<float>& row,
                                    std::uint32_t tables) {
  std::vector<std::uint32_t> codes(tables);
  HashScratch scratch;
  const float* rows[] = {row.data()};
  family.hash_rows(rows, codes, scratch);
  return codes;
}

std::vector<std::uint32_t> hash_query(const HashFamily& family,
                                      const std::vector<std::uint8_t>& query,
                                      std::uint32_t tables) {
  std::vector<std::uint32_t> codes(tables);
  HashScratch scratch;
  family.hash_query(query, codes, scratch);
  return codes;
}

}  // namespace

TEST_CASE("hash families: a query and a row in its direction have the same codes", "[hash]") {
  for (const HashFamilyKind kind : {HashFamilyKind::kSimHash, HashFamilyKind::kDwta}) {
    for (const std::uint32_t bits : {1u, 2u, 3u, 8u, 9u, 16u, 17u, 24u}) {
      const ModelConfig config = config_of(kind, bits, 11);
      const auto family = make_hash_family(config, scalar());
      for (BatchIndex batch = 0; batch < 4; ++batch) {
        const HiddenCodes hidden = test::make_hidden(config, batch, 1);
        // Multiples of a power of two: every sum is exact in both.
        std::vector<float> row;
        for (const std::uint8_t code : hidden.codes) row.push_back(0.25F * code);
        const auto codes = hash_query(*family, hidden.codes, 11);
        REQUIRE(codes == hash_row(*family, row, 11));
        for (const std::uint32_t code : codes) REQUIRE((code >> bits) == 0);
      }
    }
  }
}

TEST_CASE("hash families: codes depend on the seed and on the table", "[hash]") {
  for (const HashFamilyKind kind : {HashFamilyKind::kSimHash, HashFamilyKind::kDwta}) {
    ModelConfig config = config_of(kind, 12, 20);
    const HiddenCodes hidden = test::make_hidden(config, 1, 1);
    const auto first = hash_query(*make_hash_family(config, scalar()), hidden.codes, 20);
    REQUIRE(std::set<std::uint32_t>(first.begin(), first.end()).size() > 10);
    config.seed += 1;
    REQUIRE(hash_query(*make_hash_family(config, scalar()), hidden.codes, 20) != first);
  }
}

TEST_CASE("hash families: a vector of zeros has code 0 in every table", "[hash]") {
  for (const HashFamilyKind kind : {HashFamilyKind::kSimHash, HashFamilyKind::kDwta}) {
    const ModelConfig config = config_of(kind, 9, 7);
    const auto family = make_hash_family(config, scalar());
    REQUIRE(hash_query(*family, std::vector<std::uint8_t>(48, 0), 7) ==
            std::vector<std::uint32_t>(7, 0));
    REQUIRE(hash_row(*family, std::vector<float>(48, 0.0F), 7) == std::vector<std::uint32_t>(7, 0));
  }
}

TEST_CASE("hash families: hashing rows together or alone, at any level, is the same", "[hash]") {
  for (const HashFamilyKind kind : {HashFamilyKind::kSimHash, HashFamilyKind::kDwta}) {
    const ModelConfig config = config_of(kind, 9, 13);
    Rng rng(5, Purpose::kTest);
    std::vector<std::vector<float>> rows(kHashRowsMax, std::vector<float>(48));
    std::vector<const float*> pointers;
    for (auto& row : rows) {
      for (float& value : row) value = signed_unit(rng.next());
      pointers.push_back(row.data());
    }
    std::vector<std::uint32_t> alone;
    const auto reference = make_hash_family(config, scalar());
    for (const auto& row : rows) {
      const auto codes = hash_row(*reference, row, 13);
      alone.insert(alone.end(), codes.begin(), codes.end());
    }
    for (const SimdLevel level : available_simd_levels()) {
      const auto family = make_hash_family(config, kernels_for(level));
      std::vector<std::uint32_t> together(kHashRowsMax * 13);
      HashScratch scratch;
      family->hash_rows(pointers, together, scratch);
      REQUIRE(together == alone);
    }
  }
}

TEST_CASE("dwta: the winner is the largest coordinate, and an empty bin borrows", "[hash]") {
  // One table of one bin; exactly eight of the 48 coordinates matter.
  const ModelConfig config = config_of(HashFamilyKind::kDwta, 3, 1);
  const auto family = make_hash_family(config, scalar());
  std::set<std::uint32_t> winners;
  for (std::size_t i = 0; i < 48; ++i) {
    std::vector<std::uint8_t> query(48, 1);
    query[i] = 9;
    winners.insert(hash_query(*family, query, 1)[0]);
  }
  REQUIRE(winners == std::set<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7});

  // Many bins and one coordinate on: a table whose own bins are empty takes a winner from another,
  // so nearly all tables agree with one of the bins that see the coordinate.
  const ModelConfig many = config_of(HashFamilyKind::kDwta, 3, 200);
  std::vector<std::uint8_t> query(48, 0);
  query[17] = 200;
  const auto codes = hash_query(*make_hash_family(many, scalar()), query, 200);
  std::size_t not_zero = 0;
  for (const std::uint32_t code : codes) not_zero += code != 0 ? 1 : 0;
  // A winner's position is uniform in 0 .. 7; without borrowing about a sixth of that is left.
  REQUIRE(not_zero > 140);
}

}  // namespace gleaner

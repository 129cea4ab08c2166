#include <catch2/catch.hpp>
#include <set>

#include "common/counter_random.hpp"
#include "common/train/sim_hash.hpp"
#include "tests/unit/common/train/train_fixture.hpp"

namespace gleaner {
namespace {

const Kernels& scalar() {
  return kernels_for(SimdLevel::kScalar);
}

ModelConfig config_of(std::uint32_t bits, std::uint32_t tables) {
  ModelConfig config = test::small_config();
  config.hash_bits = bits;
  config.tables = tables;
  return config;
}

std::vector<std::uint32_t> hash_row(const SimHash& sim_hash, const std::vector<float>& row,
                                    std::uint32_t tables) {
  std::vector<std::uint32_t> codes(tables);
  HashScratch scratch;
  const float* rows[] = {row.data()};
  sim_hash.hash_rows(rows, codes, scratch);
  return codes;
}

std::vector<std::uint32_t> hash_query(const SimHash& sim_hash,
                                      const std::vector<std::uint8_t>& query,
                                      std::uint32_t tables) {
  std::vector<std::uint32_t> codes(tables);
  HashScratch scratch;
  sim_hash.hash_query(query, codes, scratch);
  return codes;
}

}  // namespace

TEST_CASE("simhash: a query and a row in its direction have the same codes", "[hash]") {
  for (const std::uint32_t bits : {1u, 2u, 3u, 8u, 9u, 16u, 17u, 24u}) {
    const ModelConfig config = config_of(bits, 11);
    const SimHash sim_hash(config, scalar());
    for (BatchIndex batch = 0; batch < 4; ++batch) {
      const QuantizedActivations hidden = test::make_hidden(config, batch, 1);
      // Multiples of a power of two: every sum is exact in both.
      std::vector<float> row;
      for (const std::uint8_t code : hidden.codes) {
        row.push_back(0.25F * static_cast<std::int8_t>(code));
      }
      const auto codes = hash_query(sim_hash, hidden.codes, 11);
      REQUIRE(codes == hash_row(sim_hash, row, 11));
      for (const std::uint32_t code : codes) REQUIRE((code >> bits) == 0);
    }
  }
}

TEST_CASE("simhash: codes depend on the seed and on the table", "[hash]") {
  ModelConfig config = config_of(12, 20);
  const QuantizedActivations hidden = test::make_hidden(config, 1, 1);
  const auto first = hash_query(SimHash(config, scalar()), hidden.codes, 20);
  REQUIRE(std::set<std::uint32_t>(first.begin(), first.end()).size() > 10);
  config.seed += 1;
  REQUIRE(hash_query(SimHash(config, scalar()), hidden.codes, 20) != first);
}

TEST_CASE("simhash: a vector of zeros has code 0 in every table", "[hash]") {
  const ModelConfig config = config_of(9, 7);
  const SimHash sim_hash(config, scalar());
  REQUIRE(hash_query(sim_hash, std::vector<std::uint8_t>(48, 0), 7) ==
          std::vector<std::uint32_t>(7, 0));
  REQUIRE(hash_row(sim_hash, std::vector<float>(48, 0.0F), 7) == std::vector<std::uint32_t>(7, 0));
}

TEST_CASE("simhash: hashing rows together or alone, at any level, is the same", "[hash]") {
  const ModelConfig config = config_of(9, 13);
  Rng rng(5, Purpose::kTest);
  std::vector<std::vector<float>> rows(kHashRowsMax, std::vector<float>(48));
  std::vector<const float*> pointers;
  for (auto& row : rows) {
    for (float& value : row) value = signed_unit(rng.next());
    pointers.push_back(row.data());
  }
  std::vector<std::uint32_t> alone;
  const SimHash reference(config, scalar());
  for (const auto& row : rows) {
    const auto codes = hash_row(reference, row, 13);
    alone.insert(alone.end(), codes.begin(), codes.end());
  }
  for (const SimdLevel level : available_simd_levels()) {
    const SimHash sim_hash(config, kernels_for(level));
    std::vector<std::uint32_t> together(kHashRowsMax * 13);
    HashScratch scratch;
    sim_hash.hash_rows(pointers, together, scratch);
    REQUIRE(together == alone);
  }
}

}  // namespace gleaner

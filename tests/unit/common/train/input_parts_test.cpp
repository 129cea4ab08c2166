#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "common/train/aligned_vector.hpp"
#include "common/train/kernels.hpp"
#include "common/train/prepared_examples.hpp"
#include "tests/unit/common/train/input_examples.hpp"

namespace gleaner {
TEST_CASE("feature index: names every feature's examples and values, ascending", "[input_index]") {
  FeatureIndex index(300);
  for (const std::uint64_t seed : {1u, 2u, 3u}) {  // the second and third reuse its storage
    const InputExamples examples = make_input_examples(seed, 30, 320, 40);  // 300.. are unknown
    index.build(examples.views);
    std::map<std::uint32_t, std::map<std::uint32_t, float>> expected;
    for (std::uint32_t e = 0; e < 30; ++e) {
      expected[300][e] = 1.0F;
      for (std::size_t i = 0; i < examples.features[e].size(); ++i) {
        if (examples.features[e][i] >= 300) continue;
        expected[examples.features[e][i]][e] = examples.values[e][i];
      }
    }
    REQUIRE(index.rows().size() == expected.size());
    REQUIRE(index.rows().back() == 300);
    for (std::size_t r = 0; r < index.rows().size(); ++r) {
      const auto& of_row = expected.at(index.rows()[r]);
      REQUIRE(index.examples_of(r).size() == of_row.size());
      std::size_t i = 0;
      for (const auto& [example, value] : of_row) {
        REQUIRE(index.examples_of(r)[i] == example);
        REQUIRE(index.values_of(r)[i++] == value);
      }
      expected.erase(index.rows()[r]);
    }
  }
}

TEST_CASE("feature index: a batch without features has the bias only", "[input_index]") {
  FeatureIndex index(10);
  const std::vector<ExampleView> empty(3);
  index.build(empty);
  REQUIRE(index.rows().size() == 1);
  REQUIRE(index.examples_of(0).size() == 3);
  index.build({});
  REQUIRE(index.rows().size() == 1);
  REQUIRE(index.examples_of(0).empty());
}

TEST_CASE("input kernels: every variant is the same chain of fused multiply-adds",
          "[input_kernels]") {
  constexpr std::size_t kStride = 336;
  AlignedVector<float> rows(40 * kStride);
  Rng rng(1, Purpose::kTest);
  for (float& value : rows) value = signed_unit(rng.next());
  for (const SimdLevel level : available_simd_levels()) {
    for (const std::size_t width : {16u, 32u, 48u, 64u, 80u, 128u, 144u, 192u, 256u, 336u}) {
      for (const std::size_t count : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 33u}) {
        std::vector<std::uint32_t> picks(count);
        std::vector<float> factors(count);
        for (auto& pick : picks) pick = static_cast<std::uint32_t>(rng.next_below(40));
        for (auto& factor : factors) factor = signed_unit(rng.next());
        AlignedVector<float> sum(width + 16, 0.25F);
        const AlignedVector<float> before = sum;
        kernels_for(level).add_rows(rows.data(), kStride, picks.data(), factors.data(), count,
                                    sum.data(), width);
        for (std::size_t j = 0; j < width + 16; ++j) {
          float expected = before[j];
          for (std::size_t i = 0; i < count && j < width; ++i) {
            expected = std::fma(factors[i], rows[picks[i] * kStride + j], expected);
          }
          REQUIRE(sum[j] == expected);
        }
      }
    }
  }
}

}  // namespace gleaner

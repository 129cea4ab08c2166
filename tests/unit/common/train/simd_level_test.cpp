#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "common/train/kernels.hpp"

namespace gleaner {

TEST_CASE("simd level: names are read back, others are refused with what is possible", "[simd]") {
  for (const SimdLevel level : {SimdLevel::kScalar, SimdLevel::kAvx2, SimdLevel::kAvx512}) {
    REQUIRE(parse_simd_level(simd_level_name(level)).value() == level);
  }
  for (const char* name : {"AVX2", "avx", "sse", " scalar"}) {
    const Result<SimdLevel> level = choose_simd_level(name);
    REQUIRE_FALSE(level.ok());
    REQUIRE(level.error().code == ErrorCode::kInvalidArgument);
    REQUIRE_THAT(level.error().message, Catch::Matchers::Contains("GLEANER_SIMD") &&
                                            Catch::Matchers::Contains(name) &&
                                            Catch::Matchers::Contains("scalar, avx2 or avx512"));
  }
}

TEST_CASE("simd level: nothing asked for gives the best there is", "[simd]") {
  const std::vector<SimdLevel> levels = available_simd_levels();
  REQUIRE(levels.front() == SimdLevel::kScalar);
  REQUIRE(choose_simd_level("").value() == levels.back());
  for (const SimdLevel level : levels) {
    REQUIRE(choose_simd_level(simd_level_name(level)).value() == level);
    REQUIRE(kernels_for(level).level == level);
  }
}

TEST_CASE("simd level: a level this machine lacks is refused with those it has", "[simd]") {
  for (const SimdLevel level : {SimdLevel::kAvx2, SimdLevel::kAvx512}) {
    const std::vector<SimdLevel> levels = available_simd_levels();
    if (std::find(levels.begin(), levels.end(), level) != levels.end()) continue;
    const Result<SimdLevel> chosen = choose_simd_level(simd_level_name(level));
    REQUIRE_FALSE(chosen.ok());
    REQUIRE_THAT(chosen.error().message, Catch::Matchers::Contains("can run scalar"));
  }
}

}  // namespace gleaner

// The instruction sets the kernels are written for, and which of them this machine and its user
// want. All levels compute the same bits; the level only decides how fast. Any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace gleaner {

enum class SimdLevel : std::uint8_t {
  kScalar = 0,  // portable C++: the reference, and what other architectures run
  kAvx2 = 1,    // AVX2, FMA and F16C
  kAvx512 = 2,  // AVX-512 F, BW, DQ and VL
};

// "scalar", "avx2" or "avx512".
const char* simd_level_name(SimdLevel level);
Result<SimdLevel> parse_simd_level(std::string_view name);

// The levels that this build and this processor can run, ascending; kScalar is always there.
std::vector<SimdLevel> available_simd_levels();

// `requested` is the value of GLEANER_SIMD, empty when it is not set: then the best available
// level. The error for an unknown or unavailable level says what is available.
Result<SimdLevel> choose_simd_level(std::string_view requested);

// choose_simd_level of the environment's GLEANER_SIMD. Programs call it once at start-up, to report
// its error before anything else happens.
Result<SimdLevel> simd_level_from_environment();

}  // namespace gleaner

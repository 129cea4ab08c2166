// Pieces in 256-bit AVX2 that both vector levels use. Only their files include this.
#pragma once

#include <immintrin.h>

#include "common/train/kernels.hpp"

namespace gleaner {
namespace {

// Input: sums of lanes l and l + 8. Adds lanes l and l + 4, then l + 2, then l + 1.
inline float reduce_eight(__m256 x) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

// Sums four vectors at once in the same order, by transposing between the steps; then multiplies
// each sum by its scale and adds its bias.
inline void reduce_eight4(__m256 a, __m256 b, __m256 c, __m256 d, const float* scales,
                          const float* biases, float* sums) {
  const __m256 ab =
      _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
  const __m256 cd =
      _mm256_add_ps(_mm256_permute2f128_ps(c, d, 0x20), _mm256_permute2f128_ps(c, d, 0x31));
  // Lower half: two sums of a, two of c; upper half: of b and d.
  const __m256 two =
      _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
  const __m256 one = _mm256_add_ps(two, _mm256_shuffle_ps(two, two, 0xb1));
  const __m128 ac = _mm256_castps256_ps128(one);
  const __m128 bd = _mm256_extractf128_ps(one, 1);
  const __m128 abcd = _mm_shuffle_ps(_mm_unpacklo_ps(ac, bd), _mm_unpackhi_ps(ac, bd), 0x44);
  _mm_storeu_ps(sums, _mm_fmadd_ps(abcd, _mm_loadu_ps(scales), _mm_loadu_ps(biases)));
}

// For eight pairs: sets the sign bit of each lane whose pair is a true label.
inline __m256 true_signs(const ActivePair* pairs) {
  const __m128i words = _mm_loadu_si128(reinterpret_cast<const __m128i*>(pairs));
  const __m256i wide = _mm256_slli_epi32(_mm256_cvtepu16_epi32(words), 16);
  return _mm256_castsi256_ps(_mm256_and_si256(wide, _mm256_set1_epi32(INT32_MIN)));
}

}  // namespace
}  // namespace gleaner

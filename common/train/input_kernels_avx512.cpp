#include <immintrin.h>

#include "common/train/kernels.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kPrefetchRows = 12;

// kBlocks * 16 columns at a time stay in registers over the whole list of rows.
template <std::size_t kBlocks>
void add_columns(const float* rows, std::size_t stride, const std::uint32_t* picks,
                 const float* factors, std::size_t count, float* sum) {
  __m512 sums[kBlocks];
#pragma GCC unroll 8
  for (std::size_t b = 0; b < kBlocks; ++b) sums[b] = _mm512_loadu_ps(sum + 16 * b);
  for (std::size_t i = 0; i < count; ++i) {
    if (i + kPrefetchRows < count) {
      const float* ahead = rows + picks[i + kPrefetchRows] * stride;
#pragma GCC unroll 8
      for (std::size_t b = 0; b < kBlocks; ++b) {
        _mm_prefetch(reinterpret_cast<const char*>(ahead + 16 * b), _MM_HINT_T0);
      }
    }
    const float* row = rows + picks[i] * stride;
    const __m512 factor = _mm512_set1_ps(factors[i]);
#pragma GCC unroll 8
    for (std::size_t b = 0; b < kBlocks; ++b) {
      sums[b] = _mm512_fmadd_ps(factor, _mm512_loadu_ps(row + 16 * b), sums[b]);
    }
  }
#pragma GCC unroll 8
  for (std::size_t b = 0; b < kBlocks; ++b) _mm512_storeu_ps(sum + 16 * b, sums[b]);
}

}  // namespace

void add_rows_avx512(const float* rows, std::size_t stride, const std::uint32_t* picks,
                     const float* factors, std::size_t count, float* sum, std::size_t width) {
  std::size_t j = 0;
  for (; j + 128 <= width; j += 128) {
    add_columns<8>(rows + j, stride, picks, factors, count, sum + j);
  }
  for (; j < width; j += 16) add_columns<1>(rows + j, stride, picks, factors, count, sum + j);
}

}  // namespace gleaner

// The two loops over weight rows that the input layer spends its time in. Every variant computes
// each column by the same chain of fused multiply-adds, so all give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gleaner {

// For i = 0 .. count - 1 in this order, for every column j < width (a multiple of 16):
//   sum[j] = fma(factors[i], rows[picks[i] * stride + j], sum[j])
// All pointers are to 64-byte-aligned data; stride is a multiple of 16.
using AddRows = void (*)(const float* rows, std::size_t stride, const std::uint32_t* picks,
                         const float* factors, std::size_t count, float* sum, std::size_t width);

void add_rows_scalar(const float* rows, std::size_t stride, const std::uint32_t* picks,
                     const float* factors, std::size_t count, float* sum, std::size_t width);
#if defined(__x86_64__)
void add_rows_avx2(const float* rows, std::size_t stride, const std::uint32_t* picks,
                   const float* factors, std::size_t count, float* sum, std::size_t width);
void add_rows_avx512(const float* rows, std::size_t stride, const std::uint32_t* picks,
                     const float* factors, std::size_t count, float* sum, std::size_t width);
#endif

}  // namespace gleaner

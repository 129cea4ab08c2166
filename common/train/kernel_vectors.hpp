// Kernels that are one operation over whole vectors of floats or integers. kernel_bodies.hpp
// includes this file once per level, with that level's `Vec`.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/train/kernels.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kWidth = 16;  // floats of a Vec
// A row is fetched from memory this number of rows before its use.
constexpr std::size_t kPrefetchRows = 4;

float dot_kernel(const float* a, const float* b, std::size_t n) {
  Vec sum = Vec::zero();
  for (std::size_t i = 0; i < n; i += kWidth) {
    sum = Vec::fma(Vec::load(a + i), Vec::load(b + i), sum);
  }
  return Vec::reduce(sum);
}

void axpy_kernel(float a, const float* x, float* y, std::size_t n) {
  const Vec factor = Vec::broadcast(a);
  for (std::size_t i = 0; i < n; i += kWidth) {
    Vec::fma(factor, Vec::load(x + i), Vec::load(y + i)).store(y + i);
  }
}

float sum_of_squares_kernel(const float* x, std::size_t n) {
  return dot_kernel(x, x, n);
}

// Steps of sixteen rows at once: a square root and two divisions in sequence have a long latency.
void rms_steps_kernel(const RmsRule& rule, const float* squares, std::size_t n, float* states,
                      float* factors) {
  const Vec mean = Vec::div(Vec::load(squares), Vec::broadcast(static_cast<float>(n)));
  const Vec before = Vec::load(states);
  const Vec share = Vec::select_nonzero(before, Vec::broadcast(rule.decay_complement),
                                        Vec::broadcast(rule.first_fraction));
  const Vec after = Vec::fma(Vec::broadcast(rule.decay), before, Vec::mul(share, mean));
  after.store(states);
  const Vec root = Vec::add(Vec::sqrt(after), Vec::broadcast(rule.epsilon));
  Vec::negate(Vec::div(Vec::broadcast(rule.rate), root)).store(factors);
}

void dequantise_kernel(float scale, const std::uint8_t* codes, float* values, std::size_t n) {
  const Vec factor = Vec::broadcast(scale);
  for (std::size_t i = 0; i < n; i += kWidth) {
    Vec::mul(factor, Vec::load_codes(codes + i)).store(values + i);
  }
}

// Sixteen integers. GCC maps them to what the instruction set has.
using Words = std::uint32_t __attribute__((vector_size(64), aligned(4), may_alias));

void round_gradient_kernel(const GradientRounding& work) {
  constexpr std::uint32_t kHalf = 1U << (kGradientGuardBits - 1);
  constexpr std::uint32_t kWhole = ~((1U << kGradientGuardBits) - 1);
  const std::size_t width = work.width;
  std::uint32_t* const first = work.sums[0];
  for (std::size_t k = 1; k < work.sum_count; ++k) {
    std::uint32_t* const other = work.sums[k];
    for (std::size_t i = 0; i < width; i += kWidth) {
      *reinterpret_cast<Words*>(first + i) += *reinterpret_cast<Words*>(other + i);
      *reinterpret_cast<Words*>(other + i) = Words{};
    }
  }
  const Words begin = Words{} + (kHalf - work.addend);
  Words check{};
  Words factor;
  for (std::uint32_t l = 0; l < kWidth; ++l) factor[l] = 2 * (l * 0x9e3779b9U) + 1;
  const Words stride = Words{} + 0x85ebca6aU;  // even: factors stay odd
  for (std::size_t i = 0; i < width; i += kWidth) {
    Words& sum = *reinterpret_cast<Words*>(first + i);
    const Words rounded = (begin + sum) & kWhole;
    sum = rounded;
    check += rounded * factor;
    factor += stride;
  }
  *reinterpret_cast<Words*>(work.check) = check;
}

}  // namespace

// Projections of quantized activations and rows, for hashing.

namespace {

// The levels of a Walsh-Hadamard transform that combine vectors, starting at `distance`.
void hadamard_between(Vec* values, std::size_t count, std::size_t distance) {
  for (; distance < count; distance *= 2) {
    for (std::size_t first = 0; first < count; first += 2 * distance) {
      for (std::size_t v = first; v < first + distance; ++v) {
        const Vec sum = Vec::add(values[v], values[v + distance]);
        values[v + distance] = Vec::sub(values[v], values[v + distance]);
        values[v] = sum;
      }
    }
  }
}

// The levels starting at `Distance`, over `Count` vectors that stay in registers.
template <std::size_t Count, std::size_t Distance>
[[gnu::always_inline]] inline void hadamard_within(Vec* x) {
  if constexpr (Distance < Count) {
#pragma GCC unroll 4
    for (std::size_t pair = 0; pair < Count / 2; ++pair) {
      const std::size_t low = pair / Distance * 2 * Distance + pair % Distance;
      const Vec sum = Vec::add(x[low], x[low + Distance]);
      x[low + Distance] = Vec::sub(x[low], x[low + Distance]);
      x[low] = sum;
    }
    hadamard_within<Count, 2 * Distance>(x);
  }
}

// The lower levels, over `Count` vectors in registers: within each vector, then between vectors.
template <std::size_t Count>
void hadamard_start(const SignProjections& projections, std::size_t first, const float* row,
                    std::size_t column, Vec* values) {
  Vec x[Count];
#pragma GCC unroll 8
  for (std::size_t v = 0; v < Count; ++v) {
    const std::size_t i = column + v * kWidth;
    x[v] =
        i < projections.width
            ? Vec::hadamard(Vec::mul(Vec::load(projections.flips + first + i), Vec::load(row + i)))
            : Vec::zero();
  }
  hadamard_within<Count, 1>(x);
#pragma GCC unroll 8
  for (std::size_t v = 0; v < Count; ++v) values[v] = x[v];
}

constexpr std::size_t kProjectionVectorsMax = 4096 / kWidth;

// Works on `Count` vectors of the row at a time, which fit the registers. `Count` divides a block.
template <std::size_t Count>
void project_row(const SignProjections& projections, const float* row, std::uint16_t* bits) {
  const std::size_t vectors = projections.block / kWidth;
  Vec values[kProjectionVectorsMax];
  for (std::size_t first = 0; first < projections.count; first += projections.block) {
    for (std::size_t v = 0; v < vectors; v += Count) {
      hadamard_start<Count>(projections, first, row, v * kWidth, values + v);
    }
    hadamard_between(values, vectors, Count);
    for (std::size_t v = 0; v < vectors; ++v) {
      bits[first / kWidth + v] = Vec::positive_bits(values[v]);
    }
  }
}

void project_rows_kernel(const SignProjections& projections, const float* const* rows,
                         std::size_t count, std::uint16_t* bits) {
  const std::size_t words = projections.count / kWidth;
  for (std::size_t r = 0; r < count; ++r) {
    if (r + kPrefetchRows < count) {
      const float* ahead = rows[r + kPrefetchRows];
      for (std::size_t i = 0; i < projections.width; i += kWidth) __builtin_prefetch(ahead + i);
    }
    if (projections.block % (8 * kWidth) == 0) {
      project_row<8>(projections, rows[r], bits + r * words);
    } else {
      project_row<2>(projections, rows[r], bits + r * words);
    }
  }
}

constexpr std::size_t kPicksAhead = 12;

// Blocks * kWidth columns at a time stay in registers over the whole list of rows.
template <std::size_t Blocks>
void add_columns(const float* rows, std::size_t stride, const std::uint32_t* picks,
                 const float* factors, std::size_t count, float* sum) {
  Vec sums[Blocks];
#pragma GCC unroll 8
  for (std::size_t b = 0; b < Blocks; ++b) sums[b] = Vec::load(sum + kWidth * b);
  for (std::size_t i = 0; i < count; ++i) {
    if (i + kPicksAhead < count) {
      const float* ahead = rows + picks[i + kPicksAhead] * stride;
#pragma GCC unroll 8
      for (std::size_t b = 0; b < Blocks; ++b) __builtin_prefetch(ahead + kWidth * b);
    }
    const float* row = rows + picks[i] * stride;
    const Vec factor = Vec::broadcast(factors[i]);
#pragma GCC unroll 8
    for (std::size_t b = 0; b < Blocks; ++b) {
      sums[b] = Vec::fma(factor, Vec::load(row + kWidth * b), sums[b]);
    }
  }
#pragma GCC unroll 8
  for (std::size_t b = 0; b < Blocks; ++b) sums[b].store(sum + kWidth * b);
}

void add_rows_kernel(const float* rows, std::size_t stride, const std::uint32_t* picks,
                     const float* factors, std::size_t count, float* sum, std::size_t width) {
  constexpr std::size_t kBlocks = Vec::kBackwardBlocks;
  std::size_t j = 0;
  for (; j + kBlocks * kWidth <= width; j += kBlocks * kWidth) {
    add_columns<kBlocks>(rows + j, stride, picks, factors, count, sum + j);
  }
  for (; j < width; j += kWidth) add_columns<1>(rows + j, stride, picks, factors, count, sum + j);
}

}  // namespace
}  // namespace gleaner

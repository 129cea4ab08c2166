// One operation over whole vectors of floats or integers. Included by kernel_bodies.hpp, as it is:
// once a level, with that level's `Vec`.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/train/kernels.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kWidth = 16;  // floats of a Vec
// How many rows before its use a row is fetched from memory.
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

// Sixteen rows' steps at once: a square root and two divisions, one after the other, are long to
// wait for.
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

// Sixteen integers; GCC makes of them what the instruction set has.
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

// The logistic function and its loss. Included by kernel_bodies.hpp: once a level, with that
// level's `Vec`. README.md has its error.

namespace {

// e^-x for x in [0, 64]: x = k ln 2 + r with |r| <= ln 2 / 2, then Taylor's polynomial of degree 7,
// whose remainder is below 2^-27 there.
Vec exp_of_negative(Vec x) {
  // Adding and subtracting 1.5 * 2^23 rounds to the nearest integer.
  const Vec magic = Vec::broadcast(12582912.0F);
  const Vec k = Vec::sub(Vec::fma(x, Vec::broadcast(-1.44269504F), magic), magic);
  // ln 2 in two parts; k * high is exact because `high` has 9 significant bits to spare.
  Vec r = Vec::fma(k, Vec::broadcast(-0.693359375F), Vec::negate(x));
  r = Vec::fma(k, Vec::broadcast(2.12194440e-4F), r);
  Vec p = Vec::broadcast(1.0F / 5040.0F);
  p = Vec::fma(p, r, Vec::broadcast(1.0F / 720.0F));
  p = Vec::fma(p, r, Vec::broadcast(1.0F / 120.0F));
  p = Vec::fma(p, r, Vec::broadcast(1.0F / 24.0F));
  p = Vec::fma(p, r, Vec::broadcast(1.0F / 6.0F));
  p = Vec::fma(p, r, Vec::broadcast(0.5F));
  p = Vec::fma(p, r, Vec::broadcast(1.0F));
  p = Vec::fma(p, r, Vec::broadcast(1.0F));
  return Vec::mul(p, Vec::power_of_two(k));
}

// log(1 + t) for t in [0, 1]: 2 artanh(u) with u = t / (2 + t) <= 1/3, by its series up to u^17,
// whose remainder is below 2^-31 of the value.
Vec log_of_one_plus(Vec t) {
  const Vec u = Vec::div(t, Vec::add(Vec::broadcast(2.0F), t));
  const Vec s = Vec::mul(u, u);
  Vec p = Vec::broadcast(2.0F / 17.0F);
  p = Vec::fma(p, s, Vec::broadcast(2.0F / 15.0F));
  p = Vec::fma(p, s, Vec::broadcast(2.0F / 13.0F));
  p = Vec::fma(p, s, Vec::broadcast(2.0F / 11.0F));
  p = Vec::fma(p, s, Vec::broadcast(2.0F / 9.0F));
  p = Vec::fma(p, s, Vec::broadcast(2.0F / 7.0F));
  p = Vec::fma(p, s, Vec::broadcast(2.0F / 5.0F));
  p = Vec::fma(p, s, Vec::broadcast(2.0F / 3.0F));
  const Vec twice = Vec::add(u, u);
  return Vec::fma(Vec::mul(p, s), u, twice);
}

struct Logistic {
  Vec sigmoid;
  Vec softplus;
};

Logistic logistic_of(Vec x) {
  const Vec zero = Vec::zero();
  const Vec one = Vec::broadcast(1.0F);
  const Vec magnitude = Vec::min(Vec::max(x, Vec::negate(x)), Vec::broadcast(64.0F));
  const Vec t = exp_of_negative(magnitude);
  const Vec numerator = Vec::select_negative(x, t, one);
  return {Vec::div(numerator, Vec::add(one, t)), Vec::add(Vec::max(x, zero), log_of_one_plus(t))};
}

void logistic_kernel(const float* x, float* sigmoid, float* softplus, std::size_t n) {
  for (std::size_t i = 0; i < n; i += kWidth) {
    const Logistic result = logistic_of(Vec::load(x + i));
    result.sigmoid.store(sigmoid + i);
    result.softplus.store(softplus + i);
  }
}

}  // namespace

// Projections of quantized activations and rows, for hashing. Included by kernel_bodies.hpp, as it
// is: once a level, with that level's `Vec`.

namespace {

// The levels of a Walsh-Hadamard transform that combine vectors, from `distance` on.
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

// The levels from `Distance` on, of `Count` vectors that stay in registers.
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

// The lower levels, of as many vectors as fit the registers: within vectors, then between them.
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

// `Count` vectors of the row at a time fit the registers; it divides a block.
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

}  // namespace
}  // namespace gleaner

// IEEE 754 binary16, round to nearest even, in integer arithmetic: the same bits on every machine.
#pragma once

#include <bit>
#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gleaner {

// The fused multiply-add of the portable kernels, rounded once on every machine; some C libraries
// round theirs twice. Only for files that are compiled for the plain architecture (see
// kernels.hpp).
static_assert(FLT_EVAL_METHOD == 0, "floats and doubles must be rounded as what they are");

// Two doubles fill the smallest vector registers. The compiler maps them to the architecture.
inline constexpr std::size_t kFmaLanes = 2;
using FmaFloats = float __attribute__((vector_size(4 * kFmaLanes)));
using FmaDoubles = double __attribute__((vector_size(8 * kFmaLanes)));
using FmaWords = std::uint64_t __attribute__((vector_size(8 * kFmaLanes)));

// a * b + c, rounded once: computed in double and rounded to odd. The product of two floats is
// exact in double. An inexact sum gets an odd last bit, which keeps it off the midpoints between
// floats and on its side of them. Rounding this sum to float gives the same as rounding once
// (Boldo, Melquiond: Emulation of a FMA and correctly rounded sums, IEEE TC 2008). The same holds
// for subnormal results, which have fewer bits.
inline FmaFloats software_fma(FmaFloats a, FmaFloats b, FmaFloats c) {
  const FmaDoubles product =
      __builtin_convertvector(a, FmaDoubles) * __builtin_convertvector(b, FmaDoubles);
  const FmaDoubles addend = __builtin_convertvector(c, FmaDoubles);
  const FmaDoubles sum = product + addend;
  // The error of the sum (Knuth's TwoSum). Exact, or NaN if the sum is infinite or NaN.
  const FmaDoubles part = sum - product;
  const FmaDoubles error = (product - (sum - part)) + (addend - part);
  const auto is_inexact = reinterpret_cast<FmaWords>((error > 0.0) | (error < 0.0)) & 1;
  // Rounds towards zero where the sum was rounded away from it, then sets the odd bit.
  const auto bits = reinterpret_cast<FmaWords>(sum);
  const FmaWords is_beyond = (reinterpret_cast<FmaWords>(error) ^ bits) >> 63;
  const FmaWords odd = (bits - (is_beyond & is_inexact)) | is_inexact;
  return __builtin_convertvector(reinterpret_cast<FmaDoubles>(odd), FmaFloats);
}

inline float software_fma(float a, float b, float c) {
  return software_fma(FmaFloats{a}, FmaFloats{b}, FmaFloats{c})[0];
}

// `result` = a * b + c for kFmaLanes floats, or for one: by the processor's instruction if the
// compiler may use it, else by software_fma.
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
inline float exact_fma(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}

inline void exact_fma(const float* a, const float* b, const float* c, float* result) {
  for (std::size_t l = 0; l < kFmaLanes; ++l) result[l] = __builtin_fmaf(a[l], b[l], c[l]);
}
#else
inline float exact_fma(float a, float b, float c) {
  return software_fma(a, b, c);
}

inline void exact_fma(const float* a, const float* b, const float* c, float* result) {
  FmaFloats x;
  FmaFloats y;
  FmaFloats z;
  std::memcpy(&x, a, sizeof x);
  std::memcpy(&y, b, sizeof y);
  std::memcpy(&z, c, sizeof z);
  x = software_fma(x, y, z);
  std::memcpy(result, &x, sizeof x);
}
#endif

// Finite values beyond the range become the largest finite value (65504) of their sign: a huge
// change is cut and does not become an infinity. NaN stays NaN.
constexpr std::uint16_t to_half(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7bffu);
  if (magnitude < 0x33000001u) return sign;  // at most half of the smallest subnormal
  const std::uint32_t exponent = magnitude >> 23;
  std::uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  // Bits to drop: 13 for normal results, more for subnormal ones.
  const std::uint32_t shift = exponent >= 113 ? 13 : 126 - exponent;
  const std::uint32_t remainder = mantissa & ((1u << shift) - 1);
  const std::uint32_t half_way = 1u << (shift - 1);
  mantissa >>= shift;
  if (remainder > half_way || (remainder == half_way && (mantissa & 1u) != 0)) ++mantissa;
  // For normal results the implicit bit adds one to the exponent field, hence 113 and not 112.
  const std::uint32_t base = exponent >= 113 ? (exponent - 113) << 10 : 0;
  return static_cast<std::uint16_t>(sign | (base + mantissa));
}

constexpr float from_half(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  std::uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  if (mantissa == 0) return std::bit_cast<float>(sign);
  std::uint32_t shifted_exponent = 113;
  while ((mantissa & 0x400u) == 0) {
    mantissa <<= 1;
    --shifted_exponent;
  }
  return std::bit_cast<float>(sign | (shifted_exponent << 23) | ((mantissa & 0x3ffu) << 13));
}

constexpr bool is_finite_half(std::uint16_t half) {
  return (half & 0x7c00u) != 0x7c00u;
}

// A logarithm with the same bits on every machine, by IEEE 754 operations in a fixed order; C
// libraries differ in the last bit. Any thread.

// Natural logarithm of a positive, normal x, to about 1e-15.
double natural_log(double x);

}  // namespace gleaner

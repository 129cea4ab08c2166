// The fused multiply-add of the portable kernels, rounded once on every machine. The C library's
// own is no help: some round twice. Private to files that are compiled for the plain architecture
// (kernels.hpp says why).
#pragma once

#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gleaner {

static_assert(FLT_EVAL_METHOD == 0, "floats and doubles must be rounded as what they are");

// As many as the plainest vector registers hold: two doubles, of which the compiler makes what the
// architecture has.
inline constexpr std::size_t kFmaLanes = 2;
using FmaFloats = float __attribute__((vector_size(4 * kFmaLanes)));
using FmaDoubles = double __attribute__((vector_size(8 * kFmaLanes)));
using FmaWords = std::uint64_t __attribute__((vector_size(8 * kFmaLanes)));

// a * b + c, rounded once: by way of double, rounded to odd. The product of two floats is exact in
// double. The sum is rounded to an odd last bit unless it is exact, which keeps it off the
// midpoints between floats and on its side of them, so that rounding it again to float gives what
// rounding once would have (Boldo, Melquiond: Emulation of a FMA and correctly rounded sums, IEEE
// TC 2008). Subnormal results have fewer bits, and are right for the same reason.
inline FmaFloats software_fma(FmaFloats a, FmaFloats b, FmaFloats c) {
  const FmaDoubles product =
      __builtin_convertvector(a, FmaDoubles) * __builtin_convertvector(b, FmaDoubles);
  const FmaDoubles addend = __builtin_convertvector(c, FmaDoubles);
  const FmaDoubles sum = product + addend;
  // The sum lacks this (Knuth's TwoSum). Exact, or NaN where the sum is infinite or NaN.
  const FmaDoubles part = sum - product;
  const FmaDoubles error = (product - (sum - part)) + (addend - part);
  const auto is_inexact = reinterpret_cast<FmaWords>((error > 0.0) | (error < 0.0)) & 1;
  // Towards zero where rounding went away from it, then odd.
  const auto bits = reinterpret_cast<FmaWords>(sum);
  const FmaWords is_beyond = (reinterpret_cast<FmaWords>(error) ^ bits) >> 63;
  const FmaWords odd = (bits - (is_beyond & is_inexact)) | is_inexact;
  return __builtin_convertvector(reinterpret_cast<FmaDoubles>(odd), FmaFloats);
}

inline float software_fma(float a, float b, float c) {
  return software_fma(FmaFloats{a}, FmaFloats{b}, FmaFloats{c})[0];
}

// The processor's own where the compiler may use it, else software_fma: `result` = a * b + c, for
// kFmaLanes floats each, or for one.
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

}  // namespace gleaner

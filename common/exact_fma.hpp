// The fused multiply-add of the portable kernels, rounded once on every machine; some C libraries
// round theirs twice. Only for files that are compiled for the plain architecture (see
// kernels.hpp).
#pragma once

#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gleaner {

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

}  // namespace gleaner

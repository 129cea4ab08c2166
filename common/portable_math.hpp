// IEEE 754 binary16, round to nearest even, in integer arithmetic: the same bits on every machine.
#pragma once

#include <bit>
#include <cstdint>

namespace gleaner {

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

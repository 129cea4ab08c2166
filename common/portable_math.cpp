#include "common/portable_math.hpp"

namespace gleaner {
namespace {

constexpr double kLn2 = 0.693147180559945309417;
constexpr double kSqrt2 = 1.41421356237309504880;

}  // namespace

// With x = m * 2^e, m in [1/sqrt(2), sqrt(2)), and s = (m - 1) / (m + 1), |s| < 0.172: ln m = 2 (s
// + s^3/3 + s^5/5 + ...), where terms beyond s^21 are below 1e-18.
double natural_log(double x) {
  constexpr std::uint64_t kMantissaMask = (std::uint64_t{1} << 52) - 1;
  constexpr std::uint64_t kExponentOfOne = std::uint64_t{1023} << 52;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double mantissa = std::bit_cast<double>((bits & kMantissaMask) | kExponentOfOne);
  if (mantissa >= kSqrt2) {
    mantissa *= 0.5;
    ++exponent;
  }
  const double s = (mantissa - 1.0) / (mantissa + 1.0);
  const double square = s * s;
  double sum = 0.0;
  for (int power = 21; power >= 1; power -= 2) sum = sum * square + 1.0 / power;
  return exponent * kLn2 + 2.0 * s * sum;
}

}  // namespace gleaner

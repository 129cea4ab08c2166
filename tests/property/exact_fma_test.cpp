// The portable fused multiply-add against the C library's, which rounds once where these tests run
// (glibc), and against the processor's own through the kernels of other levels.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <vector>

#include "common/counter_random.hpp"
#include "common/portable_math.hpp"
#include "tests/property/property_seed.hpp"

namespace gleaner {
namespace {

using Limits = std::numeric_limits<float>;

// The sign and payload of a NaN are the processor's choice.
bool is_same(float a, float b) {
  return std::isnan(a) ? std::isnan(b)
                       : std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

// Counts rather than requires each: there are millions.
struct Comparison {
  std::uint64_t wrong = 0;
  float first[3] = {};

  void add(float a, float b, float c) {
    const float truth = std::fma(a, b, c);
    const FmaFloats pair = software_fma(FmaFloats{a, b}, FmaFloats{b, a}, FmaFloats{c, c});
    if (is_same(truth, software_fma(a, b, c)) && is_same(truth, exact_fma(a, b, c)) &&
        is_same(truth, pair[0]) && is_same(truth, pair[1])) {
      return;
    }
    if (wrong++ == 0) std::copy_n(std::begin({a, b, c}), 3, first);
  }

  void require_none() const {
    INFO("fma(" << first[0] << ", " << first[1] << ", " << first[2] << ")");
    REQUIRE(wrong == 0);
  }
};

// With both signs.
std::vector<float> special_values() {
  const float eps = Limits::epsilon();
  std::vector<float> values = {0.0F,
                               Limits::denorm_min(),
                               3 * Limits::denorm_min(),
                               0x1.8p-127F,  // in the middle of the subnormals
                               Limits::min() - Limits::denorm_min(),
                               Limits::min(),
                               std::nextafter(Limits::min(), 1.0F),
                               0x1p-75F,  // squares are half of the least subnormal
                               0x1.000002p-75F,
                               0x1p-64F,
                               0x1p-63F,
                               0x1.fffffep-13F,
                               0x1p-24F,
                               0x1p-12F,
                               0x1.000002p-12F,
                               0x1.fffffcp-13F,
                               0.5F,
                               1.0F / 3.0F,
                               1.0F - eps / 2,
                               1.0F,
                               1.0F + eps,
                               1.0F + 2 * eps,
                               1.5F,
                               0x1.001p0F,  // its square ends at a midpoint
                               0x1.fffffep0F,
                               3.0F,
                               0x1p23F,
                               0x1.000002p23F,
                               0x1p24F,
                               0x1.000002p24F,
                               0x1p63F,
                               0x1.fffffep63F,
                               0x1p64F,
                               0x1p103F,  // half a unit in the last place of the largest
                               0x1.fffffep102F,
                               std::nextafter(Limits::max(), 0.0F),
                               Limits::max(),
                               Limits::infinity(),
                               Limits::quiet_NaN()};
  const std::size_t positive = values.size();
  for (std::size_t i = 0; i < positive; ++i) values.push_back(-values[i]);
  return values;
}

// Random mantissa, often with long runs of equal bits; the exponent as given, from 0 to 254.
float random_float(Rng& rng, int exponent) {
  auto mantissa = static_cast<std::uint32_t>(rng.next()) & 0x7fffffU;
  if (rng.chance(1, 4)) mantissa &= ~0U << rng.next_below(23);
  if (rng.chance(1, 4)) mantissa |= (1U << rng.next_below(23)) - 1;
  const std::uint32_t sign = rng.chance(1, 2) ? 0x80000000U : 0;
  return std::bit_cast<float>(sign | static_cast<std::uint32_t>(exponent) << 23 | mantissa);
}

int within(int exponent) {
  return std::min(std::max(exponent, 0), 254);
}

}  // namespace

TEST_CASE("exact fma: all triples of special values are rounded once", "[exact_fma]") {
  const std::vector<float> values = special_values();
  Comparison compared;
  for (const float a : values) {
    for (const float b : values) {
      for (const float c : values) compared.add(a, b, c);
    }
  }
  compared.require_none();
}

TEST_CASE("exact fma: random bits are rounded once", "[exact_fma]") {
  const std::uint64_t seed = property_seed();
  CAPTURE(seed);
  Rng rng(seed, Purpose::kTest);
  Comparison compared;
  for (int i = 0; i < 1'000'000; ++i) {
    const auto bits = [&] { return std::bit_cast<float>(static_cast<std::uint32_t>(rng.next())); };
    const float a = bits();
    const float b = bits();
    compared.add(a, b, bits());
  }
  compared.require_none();
}

TEST_CASE("exact fma: addends that cancel the product, or nearly do, are rounded once",
          "[exact_fma]") {
  const std::uint64_t seed = property_seed();
  CAPTURE(seed);
  Rng rng(seed, Purpose::kTest, 1);
  Comparison compared;
  for (int i = 0; i < 2'000'000; ++i) {
    const auto e = [&] { return static_cast<int>(rng.next_below(255)); };
    const int first = e();
    const int second = e();
    const int apart = static_cast<int>(rng.next_below(120)) - 60;
    const float a = random_float(rng, first);
    const float b = random_float(rng, second);
    compared.add(a, b, random_float(rng, within(first + second - 127 + apart)));
    const float product = -(a * b);
    compared.add(a, b, product);
    compared.add(a, b, std::nextafter(product, 0.0F));
  }
  compared.require_none();
}

TEST_CASE("exact fma: results at the edge of the subnormals are rounded once", "[exact_fma]") {
  const std::uint64_t seed = property_seed();
  CAPTURE(seed);
  Rng rng(seed, Purpose::kTest, 2);
  Comparison compared;
  for (int i = 0; i < 1'000'000; ++i) {
    const int first = 1 + static_cast<int>(rng.next_below(120));
    const int sum = static_cast<int>(rng.next_below(60)) - 40;  // of the product's exponent
    const float a = random_float(rng, first);
    const float b = random_float(rng, within(127 + sum - first));
    compared.add(a, b, random_float(rng, within(sum + static_cast<int>(rng.next_below(40)) - 20)));
  }
  compared.require_none();
}

}  // namespace gleaner

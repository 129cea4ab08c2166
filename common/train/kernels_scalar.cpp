// Portable kernels: the reference for all levels, and the only level of other architectures.
#include <bit>
#include <cmath>

#include "common/portable_math.hpp"
#include "common/train/kernels.hpp"

namespace gleaner {
namespace {

struct Vec {
  static constexpr std::size_t kBackwardBlocks = 1;

  float lane[16];

  template <typename Function>
  static Vec each(Function&& function) {
    Vec result;
    for (int l = 0; l < 16; ++l) result.lane[l] = function(l);
    return result;
  }

  static Vec zero() {
    return each([](int) { return 0.0F; });
  }

  static Vec broadcast(float x) {
    return each([&](int) { return x; });
  }

  static Vec load(const float* p) {
    return each([&](int l) { return p[l]; });
  }

  static Vec load_codes(const std::uint8_t* p) {
    return each([&](int l) { return static_cast<float>(static_cast<std::int8_t>(p[l])); });
  }

  void store(float* p) const {
    for (int l = 0; l < 16; ++l) p[l] = lane[l];
  }

  // To nearest, ties to even: the default rounding mode, which the program never changes.
  void store_rounded(std::int32_t* p) const {
    for (int l = 0; l < 16; ++l) p[l] = static_cast<std::int32_t>(std::lrintf(lane[l]));
  }

  // Adds the lanes' bits to integers, modulo 2^32.
  void add_bits(std::uint32_t* sums) const {
    for (int l = 0; l < 16; ++l) sums[l] += std::bit_cast<std::uint32_t>(lane[l]);
  }

  // The sum of the first `lanes` lanes, each rounded.
  std::int64_t sum_rounded(std::size_t lanes) const {
    std::int64_t sum = 0;
    for (std::size_t l = 0; l < lanes; ++l) sum += std::lrintf(lane[l]);
    return sum;
  }

  static float fma_one(float a, float b, float c) { return exact_fma(a, b, c); }

  static Vec sqrt(const Vec& a) {
    return each([&](int l) { return std::sqrt(a.lane[l]); });
  }

  static Vec fma(const Vec& a, const Vec& b, const Vec& c) {
    Vec result;
    for (std::size_t l = 0; l < 16; l += kFmaLanes) {
      exact_fma(a.lane + l, b.lane + l, c.lane + l, result.lane + l);
    }
    return result;
  }

  static Vec add(const Vec& a, const Vec& b) {
    return each([&](int l) { return a.lane[l] + b.lane[l]; });
  }

  static Vec sub(const Vec& a, const Vec& b) {
    return each([&](int l) { return a.lane[l] - b.lane[l]; });
  }

  static Vec mul(const Vec& a, const Vec& b) {
    return each([&](int l) { return a.lane[l] * b.lane[l]; });
  }

  static Vec div(const Vec& a, const Vec& b) {
    return each([&](int l) { return a.lane[l] / b.lane[l]; });
  }

  // As in x86 instructions: the result is b when neither is smaller (greater).
  static Vec min(const Vec& a, const Vec& b) {
    return each([&](int l) { return a.lane[l] < b.lane[l] ? a.lane[l] : b.lane[l]; });
  }

  static Vec max(const Vec& a, const Vec& b) {
    return each([&](int l) { return a.lane[l] > b.lane[l] ? a.lane[l] : b.lane[l]; });
  }

  static Vec negate(const Vec& a) {
    return each([&](int l) { return -a.lane[l]; });
  }

  // `then` where x is below zero, else `otherwise`.
  static Vec select_negative(const Vec& x, const Vec& then, const Vec& otherwise) {
    return each([&](int l) { return x.lane[l] < 0.0F ? then.lane[l] : otherwise.lane[l]; });
  }

  static Vec select_nonzero(const Vec& x, const Vec& then, const Vec& otherwise) {
    return each([&](int l) { return x.lane[l] != 0.0F ? then.lane[l] : otherwise.lane[l]; });
  }

  static Vec negate_true(const Vec& x, const ActivePair* pairs) {
    return each([&](int l) { return (pairs[l] & kTruePair) != 0 ? -x.lane[l] : x.lane[l]; });
  }

  // 2^k for integral k in [-126, 127].
  static Vec power_of_two(const Vec& k) {
    return each([&](int l) {
      return std::bit_cast<float>((static_cast<std::int32_t>(k.lane[l]) + 127) << 23);
    });
  }

  static float reduce(const Vec& x) {
    float s[8];
    for (int l = 0; l < 8; ++l) s[l] = x.lane[l] + x.lane[l + 8];
    for (int l = 0; l < 4; ++l) s[l] += s[l + 4];
    return (s[0] + s[2]) + (s[1] + s[3]);
  }

  static void reduce4(const Vec& a, const Vec& b, const Vec& c, const Vec& d, const float* scales,
                      const float* biases, float* sums) {
    sums[0] = exact_fma(reduce(a), scales[0], biases[0]);
    sums[1] = exact_fma(reduce(b), scales[1], biases[1]);
    sums[2] = exact_fma(reduce(c), scales[2], biases[2]);
    sums[3] = exact_fma(reduce(d), scales[3], biases[3]);
  }

  // Lanes l and l + d become their sum and difference, for d = 1, 2, 4, 8.
  static Vec hadamard(Vec x) {
    for (int distance = 1; distance < 16; distance *= 2) {
      const auto sign = [&](int l) { return (l & distance) == 0 ? 1.0F : -1.0F; };
      x = each([&](int l) { return x.lane[l ^ distance] + sign(l) * x.lane[l]; });
    }
    return x;
  }

  static std::uint16_t positive_bits(const Vec& x) {
    unsigned bits = 0;
    for (unsigned l = 0; l < 16; ++l) bits |= (x.lane[l] > 0.0F ? 1u : 0u) << l;
    return static_cast<std::uint16_t>(bits);
  }
};

void project_codes_kernel(const SignProjections& projections, const std::uint8_t* codes,
                          std::uint16_t* bits) {
  for (std::size_t first = 0; first < projections.count; first += 16) {
    std::int32_t sums[16] = {};
    for (std::size_t i = 0; i < projections.width; i += 2) {
      const std::int8_t* signs = projections.pairs + i * projections.count + 2 * first;
      for (std::size_t p = 0; p < 16; ++p) {
        sums[p] += signs[2 * p] * static_cast<std::int8_t>(codes[i]) +
                   signs[2 * p + 1] * static_cast<std::int8_t>(codes[i + 1]);
      }
    }
    unsigned word = 0;
    for (unsigned p = 0; p < 16; ++p) word |= (sums[p] > 0 ? 1u : 0u) << p;
    bits[first / 16] = static_cast<std::uint16_t>(word);
  }
}

}  // namespace
}  // namespace gleaner

#include "common/train/kernel_bodies.hpp"

namespace gleaner {

const Kernels& scalar_kernels() {
  static constexpr Kernels kTable = make_kernels(SimdLevel::kScalar);
  return kTable;
}

}  // namespace gleaner

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <utility>

#include "common/counter_random.hpp"
#include "common/work/quantized_activations.hpp"
#include "common/work/quantized_gradient.hpp"

namespace gleaner {
namespace {

constexpr std::int32_t kMin = -(1 << (kGradientBits - 1));
constexpr std::int32_t kMax = (1 << (kGradientBits - 1)) - 1;

QuantizedActivations codes_with(std::uint32_t examples, std::uint32_t hidden,
                                std::uint64_t on_of_16) {
  Rng rng(hidden, Purpose::kTest, on_of_16);
  QuantizedActivations codes{examples, hidden, std::vector<float>(examples, 1.0F), {}};
  for (std::size_t i = 0; i < std::size_t{examples} * hidden; ++i) {
    codes.codes.push_back(rng.chance(on_of_16, 16) ? 1 : 0);
  }
  return codes;
}

// Entries of up to `bits` bits with their sign, also where the unit is off.
std::vector<std::int32_t> gradient_for(const QuantizedActivations& codes, unsigned bits) {
  Rng rng(codes.codes.size(), Purpose::kTest, bits);
  std::vector<std::int32_t> gradient(codes.codes.size());
  for (auto& entry : gradient) {
    entry = bits == 0 ? 0 : static_cast<std::int32_t>(rng.next() >> 32) >> (32 - bits);
  }
  return gradient;
}

std::vector<std::int32_t> masked(const QuantizedActivations& codes,
                                 std::vector<std::int32_t> gradient) {
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    if (codes.codes[i] == 0) gradient[i] = 0;
  }
  return gradient;
}

bool is_refused(const QuantizedActivations& codes, const Bytes& packed) {
  std::vector<std::int32_t> sum(codes.codes.size());
  const auto added = add_gradient(codes, packed, sum);
  return !added.ok() && added.error().code == ErrorCode::kProtocol;
}

QuantizedActivations one_example(std::size_t units_on) {
  QuantizedActivations codes{1, 16, {1.0F}, std::vector<std::uint8_t>(16)};
  for (std::size_t i = 0; i < units_on; ++i) codes.codes[i] = 1;
  return codes;
}

}  // namespace

TEST_CASE("gradient: what is added is what was packed, at every width", "[gradient]") {
  for (unsigned bits = 0; bits <= unsigned{kGradientBits}; ++bits) {
    for (const std::uint32_t hidden : {16u, 80u, 128u}) {
      const QuantizedActivations codes = codes_with(5, hidden, 8);
      const auto gradient = gradient_for(codes, bits);
      std::vector<std::int32_t> sum(gradient.size());
      REQUIRE(add_gradient(codes, pack_gradient(codes, gradient), sum).ok());
      REQUIRE(sum == masked(codes, gradient));
    }
  }
}

TEST_CASE("gradient: all units off or on, with extreme entries", "[gradient]") {
  for (const std::uint64_t on : {0u, 16u}) {
    const QuantizedActivations codes = codes_with(3, 64, on);
    auto gradient = gradient_for(codes, 9);
    gradient[0] = kMin;
    gradient[1] = kMax;
    std::vector<std::int32_t> sum(gradient.size());
    REQUIRE(add_gradient(codes, pack_gradient(codes, gradient), sum).ok());
    REQUIRE(sum == masked(codes, gradient));
  }
}

TEST_CASE("gradient: sums do not depend on grouping or order", "[gradient]") {
  const QuantizedActivations codes = codes_with(4, 32, 8);
  const Bytes a = pack_gradient(codes, gradient_for(codes, 10));
  const Bytes b = pack_gradient(codes, gradient_for(codes, 20));
  std::vector<std::int32_t> ab(codes.codes.size());
  std::vector<std::int32_t> ba(codes.codes.size());
  REQUIRE(add_gradient(codes, a, ab).ok());
  REQUIRE(add_gradient(codes, b, ab).ok());
  REQUIRE(add_gradient(codes, b, ba).ok());
  REQUIRE(add_gradient(codes, a, ba).ok());
  REQUIRE(ab == ba);
  REQUIRE(pack_gradient(codes, ab) == pack_gradient(codes, ba));
}

TEST_CASE("gradient: each example takes the width its largest entry needs", "[gradient]") {
  const QuantizedActivations codes = one_example(8);
  std::vector<std::int32_t> gradient(16);
  REQUIRE(pack_gradient(codes, gradient).size() == 1);  // all zero: the width alone
  gradient[2] = -64;                                    // 7 bits with its sign
  REQUIRE(pack_gradient(codes, gradient).size() == 1 + 7);
  gradient[2] = 64;
  REQUIRE(pack_gradient(codes, gradient).size() == 1 + 8);
  gradient[15] = 1 << 20;  // off: not looked at
  REQUIRE(pack_gradient(codes, gradient).size() == 1 + 8);
}

TEST_CASE("gradient: the format's bytes are pinned", "[gradient]") {
  const QuantizedActivations codes = one_example(3);
  std::vector<std::int32_t> gradient(16);
  gradient[0] = -1;  // 1
  gradient[1] = 2;   // 4
  gradient[2] = -4;  // 7
  REQUIRE(pack_gradient(codes, gradient) == Bytes{3, 0b11100001, 0b1});
}

TEST_CASE("gradient: truncations and trailing bytes are refused", "[gradient]") {
  const QuantizedActivations codes = codes_with(3, 48, 8);
  Bytes packed = pack_gradient(codes, gradient_for(codes, 13));
  for (std::size_t size = 0; size < packed.size(); ++size) {
    REQUIRE(is_refused(codes, Bytes(packed.begin(), packed.begin() + static_cast<long>(size))));
  }
  packed.push_back(0);
  REQUIRE(is_refused(codes, packed));
}

TEST_CASE("gradient: what pack_gradient cannot have written is refused", "[gradient]") {
  const QuantizedActivations codes = one_example(3);
  REQUIRE(is_refused(codes, {27, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));  // width
  REQUIRE(is_refused(codes, {3, 0b01001001, 0b0}));                   // one bit would do
  REQUIRE(is_refused(codes, {1, 0}));                                 // none would do
  REQUIRE(is_refused(codes, {3, 0b11100001, 0b11}));                  // padding
  REQUIRE(is_refused(one_example(0), {5}));                           // no unit is on
  REQUIRE_FALSE(is_refused(codes, {3, 0b11100001, 0b1}));
}

TEST_CASE("gradient: of a wrong size nothing is added, in another encoding all of it",
          "[gradient]") {
  const QuantizedActivations codes = one_example(3);
  REQUIRE(count_units_on(codes) == std::vector<std::uint32_t>{3});
  std::vector<std::int32_t> sum(16);
  const Bytes cut{3, 0b11100001};
  REQUIRE_FALSE(check_gradient_size(count_units_on(codes), cut).ok());
  REQUIRE_FALSE(add_gradient(codes, cut, sum).ok());
  REQUIRE(sum == std::vector<std::int32_t>(16));
  const Bytes wide{3, 0b01001001, 0b0};  // one bit would do
  REQUIRE(check_gradient_size(count_units_on(codes), wide).ok());
  REQUIRE_FALSE(add_gradient(codes, wide, sum).ok());
  REQUIRE(std::vector<std::int32_t>(sum.begin(), sum.begin() + 4) ==
          std::vector<std::int32_t>{-1, -1, -1, 0});
}

TEST_CASE("gradient: a sum that leaves the range comes back at its other end", "[gradient]") {
  const QuantizedActivations codes = one_example(1);
  std::vector<std::int32_t> gradient(16);
  gradient[0] = 1;
  const Bytes one = pack_gradient(codes, gradient);
  std::vector<std::int32_t> sum(16);
  sum[0] = kMax - 1;
  REQUIRE(add_gradient(codes, one, sum).ok());
  REQUIRE(sum[0] == kMax);
  REQUIRE(add_gradient(codes, one, sum).ok());
  REQUIRE(sum[0] == kMin);
  gradient[0] = -1;
  REQUIRE(add_gradient(codes, pack_gradient(codes, gradient), sum).ok());
  REQUIRE(sum[0] == kMax);
}

TEST_CASE("gradient: the check of a sum is the sum of the checks, and of no other", "[gradient]") {
  const QuantizedActivations codes = codes_with(5, 80, 8);
  // The sum leaves the range.
  const auto one = masked(codes, gradient_for(codes, kGradientBits));
  std::vector<std::int32_t> sum(one.size());
  std::uint64_t check = 0;
  for (int i = 0; i < 3; ++i) {
    REQUIRE(add_gradient(codes, pack_gradient(codes, one), sum).ok());
    check = add_checks(check, gradient_check(codes, one));
  }
  REQUIRE(gradient_check(codes, sum) == check);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    if (codes.codes[i] == 0) continue;
    for (int bit = 0; bit < kGradientBits; ++bit) {
      std::vector<std::int32_t> other = sum;
      other[i] ^= 1 << bit;
      REQUIRE(gradient_check(codes, other) != check);
    }
  }
  REQUIRE(gradient_check(codes, one) != check);
  // Entries that have changed places.
  std::vector<std::int32_t> other = sum;
  const auto on = std::find(codes.codes.begin(), codes.codes.end(), 1);
  const auto next = std::find(on + 1, codes.codes.end(), 1);
  std::swap(other[static_cast<std::size_t>(on - codes.codes.begin())],
            other[static_cast<std::size_t>(next - codes.codes.begin())]);
  REQUIRE(gradient_check(codes, other) != check);
}

}  // namespace gleaner

// Gradients with respect to activations: shares in units, summed as integers, rounded to steps.
#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "common/counter_random.hpp"
#include "common/train/kernels.hpp"
#include "tests/property/property_seed.hpp"

namespace gleaner {
namespace {

constexpr std::array<std::size_t, 7> kWidths{0, 16, 48, 128, 512, 1072, 4096};

std::vector<std::uint32_t> random_sums(Rng& rng, std::size_t n) {
  std::vector<std::uint32_t> words(n);
  for (std::uint32_t& word : words) word = static_cast<std::uint32_t>(rng.next());
  return words;
}

}  // namespace

TEST_CASE("kernels: gradients add up in units and round to whole steps", "[kernels]") {
  CAPTURE(property_seed());
  Rng rng(property_seed(), Purpose::kTest, 9);
  constexpr std::int32_t kStep = 1 << kGradientGuardBits;
  for (const std::size_t n : kWidths) {
    const auto addend = static_cast<std::uint32_t>(rng.next());
    // Whole steps of shards before, and this one's share in two arrays.
    const std::vector<std::uint32_t> random = random_sums(rng, n);
    std::vector<std::uint32_t> first(n);
    std::vector<std::uint32_t> second(n);
    std::vector<std::uint32_t> expected(n);
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t before = static_cast<std::uint32_t>(rng.next()) * kStep;
      std::int32_t units = static_cast<std::int32_t>(rng.next_below(400)) - 200;
      if (rng.chance(1, 4)) units = kStep * 7 + kStep / 2;
      first[i] = before + random[i];
      second[i] = static_cast<std::uint32_t>(units) + addend - random[i];
      const double steps = std::floor(static_cast<double>(units) / kStep + 0.5);
      expected[i] = before + static_cast<std::uint32_t>(static_cast<std::int32_t>(steps) * kStep);
    }
    std::vector<std::uint32_t> check;
    for (const SimdLevel level : available_simd_levels()) {
      CAPTURE(n, simd_level_name(level));
      const auto round = [&](std::vector<std::uint32_t> a, std::vector<std::uint32_t> b,
                             const std::vector<std::uint32_t>& sum) {
        const std::array<std::uint32_t*, 2> sums{a.data(), b.data()};
        std::vector<std::uint32_t> own(16, 7);
        kernels_for(level).round_gradient({.width = n,
                                           .sums = sums.data(),
                                           .sum_count = sums.size(),
                                           .addend = addend,
                                           .check = own.data()});
        REQUIRE(a == sum);
        REQUIRE(b == std::vector<std::uint32_t>(n));
        return own;
      };
      const std::vector<std::uint32_t> own = round(first, second, expected);
      if (check.empty()) check = own;
      REQUIRE(own == check);
      if (n == 0) continue;
      // A change by a step shows, and the check is linear in it.
      const std::size_t at = rng.next_below(n);
      std::vector<std::uint32_t> once = second;
      std::vector<std::uint32_t> sum = expected;
      once[at] += kStep;
      sum[at] += kStep;
      const std::vector<std::uint32_t> one = round(first, once, sum);
      REQUIRE(one != check);
      once[at] += kStep;
      sum[at] += kStep;
      const std::vector<std::uint32_t> two = round(first, once, sum);
      for (std::size_t l = 0; l < 16; ++l) REQUIRE(two[l] - one[l] == one[l] - check[l]);
    }
  }
}

TEST_CASE("kernels: a pair's share of a gradient is rounded to a unit", "[kernels]") {
  // One row, one pair: delta is sigmoid(0) - 1 = -0.5, and the shares are -w / 2.
  const std::vector<float> start{0.0F,    0x1p-15F, -0x1p-15F, 0x1p-16F, 3.0F, -3.0F,
                                 63.0F,   -63.0F,   0.25F,     1e-30F,   0.1F, -0.1F,
                                 0x1p-9F, 7.0F,     0.5F,      1.0F};
  for (const SimdLevel level : available_simd_levels()) {
    std::vector<float> weights = start;
    float bias = 0;
    float state = 0;
    const std::uint32_t row = 0;
    const std::size_t end = 1;
    std::vector<ActivePair> pairs(17, kTruePair);
    const std::vector<std::uint8_t> codes(16, 0);
    const float scale = 1;
    std::vector<std::uint32_t> sums(16);
    std::vector<float> logits(17), deltas(17), gradients(kRowsPerStep * 16);
    const RowsTraining work{.width = 16,
                            .weights = weights.data(),
                            .biases = &bias,
                            .states = &state,
                            .rows = &row,
                            .row_count = 1,
                            .pair_ends = &end,
                            .pairs = pairs.data(),
                            .codes = codes.data(),
                            .scales = &scale,
                            .gradient_sums = sums.data(),
                            .gradient_magic = gradient_magic(-10),
                            .logits = logits.data(),
                            .deltas = deltas.data(),
                            .gradients = gradients.data()};
    (void)kernels_for(level).losses[0].train_rows(work,
                                                  {1e-3F, 0.999F, 0.001F, kFirstFraction, 1e-8F});
    for (std::size_t i = 0; i < 16; ++i) {
      const auto units =
          static_cast<std::int32_t>(sums[i] - std::bit_cast<std::uint32_t>(gradient_magic(-10)));
      REQUIRE(units == static_cast<std::int32_t>(std::nearbyint(-0.5 * start[i] * 0x1p16)));
    }
  }
}

}  // namespace gleaner

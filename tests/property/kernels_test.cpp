// The kernels against double arithmetic, and every available level against the scalar one.
#include "common/train/kernels.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "common/counter_random.hpp"
#include "common/model/shard_rows.hpp"
#include "tests/property/kernel_cases.hpp"
#include "tests/property/property_seed.hpp"

namespace gleaner {

TEST_CASE("kernels: sums agree with double arithmetic and between levels", "[kernels]") {
  CAPTURE(property_seed());
  Rng rng(property_seed(), Purpose::kTest, 1);
  for (const std::size_t n : widths()) {
    const auto a = random_floats(rng, n, 3.0F);
    const auto b = random_floats(rng, n);
    double exact = 0;
    double magnitude = 0;
    for (std::size_t i = 0; i < n; ++i) {
      exact += static_cast<double>(a[i]) * b[i];
      magnitude += std::abs(static_cast<double>(a[i]) * b[i]);
    }
    const float dot = scalar().dot(a.data(), b.data(), n);
    REQUIRE(std::abs(dot - exact) <= 1e-5 * magnitude);
    for (const SimdLevel level : available_simd_levels()) {
      CAPTURE(n, simd_level_name(level));
      const Kernels& kernels = kernels_for(level);
      REQUIRE(kernels.level == level);
      REQUIRE(same_bits(kernels.dot(a.data(), b.data(), n), dot));
      REQUIRE(same_bits(kernels.sum_of_squares(a.data(), n), scalar().dot(a.data(), a.data(), n)));
    }
  }
}

TEST_CASE("kernels: the order of a dot product is sixteen lanes and one tree", "[kernels]") {
  Rng rng(property_seed(), Purpose::kTest, 2);
  const auto a = random_floats(rng, 160);
  const auto b = random_floats(rng, 160);
  std::array<float, 16> lanes{};
  for (std::size_t i = 0; i < 160; ++i) lanes[i % 16] = std::fma(a[i], b[i], lanes[i % 16]);
  for (std::size_t half = 8; half >= 1; half /= 2) {
    for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  for (const SimdLevel level : available_simd_levels()) {
    REQUIRE(same_bits(kernels_for(level).dot(a.data(), b.data(), 160), lanes[0]));
  }
}

TEST_CASE("kernels: element-wise kernels agree with their definition", "[kernels]") {
  CAPTURE(property_seed());
  Rng rng(property_seed(), Purpose::kTest, 3);
  for (const std::size_t n : widths()) {
    const auto x = random_floats(rng, n);
    const auto y = random_floats(rng, n);
    const auto codes = random_codes(rng, n);
    const float a = signed_unit(rng.next());
    for (const SimdLevel level : available_simd_levels()) {
      CAPTURE(n, simd_level_name(level));
      const Kernels& kernels = kernels_for(level);
      auto sum = y;
      kernels.axpy(a, x.data(), sum.data(), n);
      std::vector<float> values(n);
      kernels.dequantise(0.37F, codes.data(), values.data(), n);
      for (std::size_t i = 0; i < n; ++i) {
        REQUIRE(same_bits(sum[i], std::fma(a, x[i], y[i])));
        REQUIRE(same_bits(values[i], 0.37F * static_cast<float>(value_of(codes[i]))));
      }
    }
  }
}

TEST_CASE("kernels: the logistic functions are exact to a few units in the last place",
          "[kernels]") {
  std::vector<float> x;
  for (float value = -64.0F; value <= 64.0F; value += 0.0078125F / 2) x.push_back(value * 1.0001F);
  for (float value = 1e-9F; value < 1.0F; value *= 1.01F) {
    x.push_back(value);
    x.push_back(-value);
  }
  x.push_back(0.0F);
  x.push_back(-0.0F);
  while (x.size() % 16 != 0) x.push_back(1000.0F);
  std::vector<float> sigmoid(x.size());
  std::vector<float> softplus(x.size());
  scalar().losses[0].curves(x.data(), sigmoid.data(), softplus.data(), x.size());
  double sigmoid_ulps = 0;
  double softplus_ulps = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double z = std::clamp(static_cast<double>(x[i]), -64.0, 1e9);
    const double t = std::exp(-std::abs(z));
    sigmoid_ulps = std::max(sigmoid_ulps, ulps(sigmoid[i], (z < 0 ? t : 1.0) / (1.0 + t)));
    softplus_ulps = std::max(softplus_ulps, ulps(softplus[i], std::max(z, 0.0) + std::log1p(t)));
  }
  INFO("worst sigmoid " << sigmoid_ulps << " ulp, worst softplus " << softplus_ulps << " ulp");
  CHECK(sigmoid_ulps < 2.5);
  CHECK(softplus_ulps < 3.0);
  for (const SimdLevel level : available_simd_levels()) {
    std::vector<float> p(x.size());
    std::vector<float> l(x.size());
    kernels_for(level).losses[0].curves(x.data(), p.data(), l.data(), x.size());
    REQUIRE(same_bits(p, sigmoid));
    REQUIRE(same_bits(l, softplus));
  }
}

TEST_CASE("kernels: training rows gives the same bits at every level", "[kernels]") {
  CAPTURE(property_seed());
  for (const std::size_t n : widths()) {
    if (n == 0) continue;
    for (const std::size_t count : {1, 3, 4, 5, 16, 17, 40}) {
      Rng rng(property_seed(), Purpose::kTest, 100 + n * 64 + count);
      RowsCase reference(rng, n, 40, count);
      const RowsCase start = reference;
      reference.run(scalar());
      REQUIRE_FALSE(same_bits(start.weights, reference.weights));
      for (const SimdLevel level : available_simd_levels()) {
        CAPTURE(n, count, simd_level_name(level));
        RowsCase rows = start;
        rows.run(kernels_for(level));
        REQUIRE(rows.loss == reference.loss);
        REQUIRE(same_bits(rows.weights, reference.weights));
        REQUIRE(rows.gradient_sums == reference.gradient_sums);
        REQUIRE(same_bits(rows.biases, reference.biases));
        REQUIRE(same_bits(rows.states, reference.states));
      }
      if (n > 256) break;
    }
  }
}

TEST_CASE("kernels: rows that are not trained stay as they are", "[kernels]") {
  Rng rng(property_seed(), Purpose::kTest, 8);
  RowsCase rows(rng, 48, 10, 6);
  const RowsCase start = rows;
  rows.run(scalar());
  for (const std::size_t row : {1, 4}) {
    REQUIRE(rows.biases[row] == start.biases[row]);
    REQUIRE(rows.states[row] == start.states[row]);
    for (std::size_t i = 0; i < 48; ++i) {
      REQUIRE(rows.weights[row * 48 + i] == start.weights[row * 48 + i]);
    }
  }
}

TEST_CASE("kernels: rows' steps follow the second-moment rule", "[kernels]") {
  Rng rng(property_seed(), Purpose::kTest, 4);
  auto squares = random_floats(rng, kRowsPerStep);
  auto before = random_floats(rng, kRowsPerStep);
  for (float& x : squares) x = std::abs(x);
  for (float& x : before) x = std::abs(x);
  before[3] = 0;   // a row's first step
  squares[5] = 0;  // a row without a gradient
  const RmsRule rule{0.01F, 0.9F, 1.0F - 0.9F, kFirstFraction, 1e-6F};
  auto reference_states = before;
  std::vector<float> reference(kRowsPerStep);
  scalar().rms_steps(rule, squares.data(), 48, reference_states.data(), reference.data());
  for (std::size_t i = 0; i < kRowsPerStep; ++i) {
    const double share = i == 3 ? kFirstFraction : 0.1;
    const double state = 0.9 * before[i] + share * squares[i] / 48;
    REQUIRE(reference_states[i] == Approx(state).epsilon(1e-5));
    REQUIRE(reference[i] == Approx(-0.01 / (std::sqrt(state) + 1e-6)).epsilon(1e-4));
  }
  for (const SimdLevel level : available_simd_levels()) {
    auto states = before;
    std::vector<float> factors(kRowsPerStep);
    kernels_for(level).rms_steps(rule, squares.data(), 48, states.data(), factors.data());
    REQUIRE(same_bits(states, reference_states));
    REQUIRE(same_bits(factors, reference));
  }
}

TEST_CASE("kernels: blocked scores are the canonical dot products", "[kernels]") {
  CAPTURE(property_seed());
  Rng rng(property_seed(), Purpose::kTest, 5);
  for (const std::size_t n : {16, 48, 128, 272}) {
    for (const std::size_t rows : {0, 1, 3, 4, 5, 9}) {
      for (const std::size_t examples : {1, 4, 7}) {
        const auto weights = random_floats(rng, rows * n);
        const auto biases = random_floats(rng, rows);
        const auto hidden = random_floats(rng, examples * n);
        for (const SimdLevel level : available_simd_levels()) {
          std::vector<float> scores(examples * (rows + 2), 7.0F);
          kernels_for(level).score_rows({n, weights.data(), biases.data(), rows, hidden.data(),
                                         examples, scores.data(), rows + 2});
          for (std::size_t e = 0; e < examples; ++e) {
            for (std::size_t r = 0; r < rows; ++r) {
              const float expected = scalar().dot(&weights[r * n], &hidden[e * n], n) + biases[r];
              REQUIRE(same_bits(scores[e * (rows + 2) + r], expected));
            }
            REQUIRE(scores[e * (rows + 2) + rows] == 7.0F);
          }
        }
      }
    }
  }
}

TEST_CASE("kernels: projections have the signs of exact sums", "[kernels]") {
  CAPTURE(property_seed());
  Rng rng(property_seed(), Purpose::kTest, 6);
  for (const std::size_t n : {16, 64, 128, 144, 512, 4096}) {
    const Projections projections(rng, n);
    const std::size_t count = projections.view.count;
    const std::size_t words = count / 16;
    auto codes = random_codes(rng, n);
    if (n == 512) std::fill(codes.begin(), codes.end(), std::uint8_t{127});
    const std::size_t rows = 11;
    const auto values = random_floats(rng, rows * n);
    std::vector<const float*> row_pointers(rows);
    for (std::size_t r = 0; r < rows; ++r) row_pointers[r] = &values[r * n];
    std::vector<std::uint16_t> row_bits(rows * words);
    scalar().project_rows(projections.view, row_pointers.data(), rows, row_bits.data());
    for (const SimdLevel level : available_simd_levels()) {
      CAPTURE(n, simd_level_name(level));
      std::vector<std::uint16_t> bits(words);
      kernels_for(level).project_codes(projections.view, codes.data(), bits.data());
      for (std::size_t p = 0; p<count; p += n> 1000 ? 97 : 1) {
        long sum = 0;
        for (std::size_t i = 0; i < n; ++i) sum += projections.sign(i, p) * value_of(codes[i]);
        REQUIRE(((bits[p / 16] >> (p % 16)) & 1) == (sum > 0 ? 1 : 0));
      }
      std::vector<std::uint16_t> other_bits(rows * words);
      kernels_for(level).project_rows(projections.view, row_pointers.data(), rows,
                                      other_bits.data());
      REQUIRE(other_bits == row_bits);
    }
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t p = 0; p<count; p += n> 1000 ? 97 : 1) {
        double sum = 0;
        for (std::size_t i = 0; i < n; ++i) {
          sum += static_cast<double>(projections.sign(i, p)) * values[r * n + i];
        }
        if (std::abs(sum) < 1e-2) continue;  // rounding may decide
        REQUIRE(((row_bits[r * words + p / 16] >> (p % 16)) & 1) == (sum > 0 ? 1 : 0));
      }
    }
  }
}

TEST_CASE("kernels: a committed row is within half a level of what it was", "[kernels]") {
  CAPTURE(property_seed());
  Rng rng(property_seed(), Purpose::kTest, 7);
  for (const std::size_t n : {std::size_t{16}, std::size_t{48}, std::size_t{512}}) {
    for (const float size : {1e-29F, 1e-6F, 0.01F, 3.0F, 1e4F}) {
      std::vector<float> committed(n);
      std::vector<float> trained(n);
      float largest = 0.0F;
      for (std::size_t i = 0; i < n; ++i) {
        committed[i] = rng.chance(1, 4) ? -0.0F : size * signed_unit(rng.next());
        trained[i] =
            rng.chance(1, 4) ? committed[i] : committed[i] + size * signed_unit(rng.next());
        largest = std::max(largest, std::abs(trained[i] - committed[i]));
      }
      for (const SimdLevel level : available_simd_levels()) {
        CAPTURE(simd_level_name(level), n, size);
        auto values = trained;
        std::vector<std::int8_t> levels(n);
        const float scale =
            kernels_for(level).round_delta(committed.data(), values.data(), levels.data(), n);
        REQUIRE(same_bits(scale, largest / kDeltaLevelMax));
        SparseUpdate update;
        update.scales = {scale};
        update.levels = levels;
        auto stored = committed;
        add_row_delta(update, 0, stored);
        for (std::size_t i = 0; i < n; ++i) {
          REQUIRE(is_delta_level(levels[i]));
          REQUIRE(same_bits(values[i], stored[i]));
          REQUIRE(std::abs(values[i] - trained[i]) <= 0.5001F * scale);
        }
      }
    }
  }
}

TEST_CASE("kernels: a change too small or too large for a level", "[kernels]") {
  const std::vector<float> zeros(16, 0.0F);
  for (const SimdLevel level : available_simd_levels()) {
    CAPTURE(simd_level_name(level));
    const auto round = kernels_for(level).round_delta;
    std::vector<std::int8_t> levels(16, 1);
    std::vector<float> values(16, 0.5F * kDeltaMin);
    REQUIRE(round(zeros.data(), values.data(), levels.data(), 16) == 0.0F);
    REQUIRE(values == zeros);
    REQUIRE(levels == std::vector<std::int8_t>(16, 0));
    values.assign(16, 1e30F);
    values[3] = -1e30F;
    REQUIRE(round(zeros.data(), values.data(), levels.data(), 16) == kDeltaScaleMax);
    REQUIRE(values[0] == Approx(kDeltaMax));
    REQUIRE(values[3] == Approx(-kDeltaMax));
    REQUIRE(levels[3] == -kDeltaLevelMax);
  }
}

}  // namespace gleaner

// Random inputs of the kernels, and comparisons of their results.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "common/counter_random.hpp"
#include "common/model/shard_rows.hpp"
#include "common/train/kernels.hpp"
#include "tests/property/property_seed.hpp"

namespace gleaner {

inline const std::vector<std::size_t>& widths() {
  static const std::vector<std::size_t> all = [] {
    std::vector<std::size_t> list;
    for (std::size_t n = 0; n <= 67 * 16; n += 16) list.push_back(n);
    list.push_back(4096);
    return list;
  }();
  return all;
}

inline std::vector<float> random_floats(Rng& rng, std::size_t n, float scale = 1.0F) {
  std::vector<float> values(n);
  for (float& value : values) value = scale * signed_unit(rng.next());
  return values;
}

inline std::vector<std::uint8_t> random_codes(Rng& rng, std::size_t n) {
  std::vector<std::uint8_t> codes(n);
  // About half of a ReLU layer is zero; linear units have either sign.
  for (auto& code : codes) {
    code =
        rng.chance(1, 2) ? static_cast<std::uint8_t>(rng.next_below(255) - 127) : std::uint8_t{0};
  }
  return codes;
}

inline int value_of(std::uint8_t code) {
  return static_cast<std::int8_t>(code);
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i])) return false;
  }
  return true;
}

inline bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

inline const Kernels& scalar() {
  return kernels_for(SimdLevel::kScalar);
}

// |error| in units of the last place of the true value as a float.
inline double ulps(float value, double truth) {
  const float nearest = static_cast<float>(truth);
  const double ulp = std::nextafter(std::abs(nearest), INFINITY) - std::abs(nearest);
  return std::abs(static_cast<double>(value) - truth) / ulp;
}

// Two blocks of projections with random flips.
struct Projections {
  std::vector<float> flips;
  std::vector<std::int8_t> pairs;
  std::vector<std::int32_t> thresholds;
  SignProjections view;

  Projections(Rng& rng, std::size_t width)
      : flips(2 * std::bit_ceil(std::max<std::size_t>(width, 32))),
        pairs(width * flips.size()),
        thresholds(flips.size()) {
    view = {width, flips.size() / 2, flips.size(), flips.data(), pairs.data(), thresholds.data()};
    for (float& flip : flips) flip = rng.chance(1, 2) ? 1.0F : -1.0F;
    for (std::size_t i = 0; i < width; ++i) {
      for (std::size_t p = 0; p < view.count; ++p) {
        pairs[(i / 2) * 2 * view.count + 2 * p + i % 2] = static_cast<std::int8_t>(sign(i, p));
        thresholds[p] += kCodeOffset * sign(i, p);
      }
    }
  }

  [[nodiscard]] int sign(std::size_t column, std::size_t projection) const {
    const std::size_t entry = projection % view.block;
    const int walsh = std::popcount(entry & column) % 2 == 0 ? 1 : -1;
    return walsh * static_cast<int>(flips[projection - entry + column]);
  }
};

inline std::vector<std::uint32_t> random_words(Rng& rng, std::size_t n) {
  std::vector<std::uint32_t> words(n);
  for (std::uint32_t& word : words) word = static_cast<std::uint32_t>(rng.next());
  return words;
}

// Trains three of five rows on random examples; owns all buffers.
struct RowsCase {
  std::size_t width;
  std::vector<std::uint32_t> rows{0, 2, 3};
  std::vector<std::size_t> pair_ends;
  std::vector<ActivePair> pairs;
  std::vector<std::uint8_t> codes;
  std::vector<std::uint32_t> gradient_sums;
  std::vector<float> scales, weights, gradients, logits, deltas, biases, states;
  std::int64_t loss = 0;
  RmsRule rule{3e-3F, 0.999F, 1.0F - 0.999F, kFirstFraction, 1e-8F};

  RowsCase(Rng& rng, std::size_t n, std::size_t examples, std::size_t count)
      : width(n),
        codes(random_codes(rng, examples * n)),
        gradient_sums(random_words(rng, examples * n)),
        scales(random_floats(rng, examples, 0.01F)),
        weights(random_floats(rng, 5 * n)),
        gradients(kRowsPerStep * n),
        biases(random_floats(rng, 5)),
        states(5, 0.25F) {
    for (const std::size_t of_row : {count, std::size_t{1}, (count + 1) / 2}) {
      for (std::size_t j = 0; j < of_row; ++j) {
        const auto example = static_cast<ActivePair>(j * examples / of_row);
        const std::uint32_t kind = rng.chance(1, 3) ? kTruePair : 0;
        pairs.push_back(static_cast<ActivePair>(example | kind));
      }
      pair_ends.push_back(pairs.size());
    }
    logits.resize(pairs.size() + 16);
    deltas.resize(pairs.size() + 16);
    pairs.resize(pairs.size() + 16);
  }

  [[nodiscard]] std::ptrdiff_t count() const {
    return static_cast<std::ptrdiff_t>(pair_ends.back());
  }

  RowsTraining work() {
    return {.width = width,
            .weights = weights.data(),
            .biases = biases.data(),
            .states = states.data(),
            .rows = rows.data(),
            .row_count = rows.size(),
            .pair_ends = pair_ends.data(),
            .pairs = pairs.data(),
            .codes = codes.data(),
            .scales = scales.data(),
            .gradient_sums = gradient_sums.data(),
            .gradient_magic = gradient_magic(-10),
            .logits = logits.data(),
            .deltas = deltas.data(),
            .gradients = gradients.data()};
  }

  void run(const Kernels& kernels) { loss = kernels.losses[0].train_rows(work(), rule); }
};

}  // namespace gleaner

// Examples with a planted structure, in any number. An example is a function of the seed and its
// index; memory does not grow with the set. Immutable; any thread may use it.
//
// Labels occur by Zipf's law. A label draws half of an example's other labels from its own four
// companions. A label has a prototype of sixteen features; an example has some features of each of
// its labels' prototypes, and noise, which prefers common features.
#pragma once

#include <cstdint>
#include <vector>

#include "common/counter_random.hpp"
#include "common/data/point_parser.hpp"
#include "common/result.hpp"

namespace gleaner {

struct SynthOptions {
  std::uint64_t seed = 1;
  Dimensions dimensions{10'000, 5'000};
  double labels_per_point = 3;
  double features_per_point = 30;
  double zipf = 1;     // exponent
  double noise = 0.3;  // fraction of the features
};

Result<void> validate(const SynthOptions& options);

// Draws ranks 0 .. count - 1 with a probability close to (rank + 1)^-exponent: exact for the first
// dozen, then constant within bins a twelfth wide, which keep the table small.
class ZipfRanks {
 public:
  ZipfRanks(std::uint32_t count, double exponent);

  [[nodiscard]] std::uint32_t draw(Rng& rng) const;

 private:
  std::vector<std::uint64_t> ends_;    // cumulative weight
  std::vector<std::uint32_t> firsts_;  // first rank of each bin, and the end of the last
};

class SyntheticPoints {
 public:
  // Requires valid options.
  explicit SyntheticPoints(const SynthOptions& options);

  void make(std::uint64_t index, Point& point) const;

 private:
  [[nodiscard]] std::uint32_t draw_count(Rng& rng, double mean, std::uint32_t max) const;
  void draw_labels(Rng& rng, std::vector<std::uint32_t>& ranks) const;
  [[nodiscard]] std::uint32_t prototype_feature(std::uint32_t rank, std::uint64_t part) const;

  SynthOptions options_;
  ZipfRanks label_ranks_;
  ZipfRanks feature_ranks_;
  Permutation label_order_;
  Permutation feature_order_;
};

}  // namespace gleaner

// Precision by the labels' frequency in training, which a mean over all labels hides. Plain values;
// one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "common/model/precision.hpp"

namespace gleaner {

// Labels by their number of training examples.
struct FrequencyBucket {
  const char* name;
  std::uint32_t count_min;
};

inline constexpr std::array<FrequencyBucket, 3> kFrequencyBuckets = {
    {{"tail", 0}, {"torso", 10}, {"head", 100}}};

// P@k and PSP@k of each bucket: over all predictions, with the hits of the bucket's labels alone,
// so that the sum over the buckets is the figure of the whole.
class BucketSums {
 public:
  // Both outlive this.
  BucketSums(std::span<const std::uint32_t> label_counts, const InversePropensities& propensities);

  void add(std::span<const std::uint32_t> labels, std::span<const std::uint32_t> ranked);

  [[nodiscard]] std::array<Precision, kFrequencyBuckets.size()> precision() const;

 private:
  std::span<const std::uint32_t> label_counts_;
  std::vector<MetricSums> sums_;
  std::vector<std::uint32_t> ranked_;  // scratch
};

}  // namespace gleaner

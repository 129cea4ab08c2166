// Precision by how often training points bear a label: what a mean over all labels hides. Plain
// values; one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "common/model/precision.hpp"

namespace gleaner {

// Labels by how many training points bear them.
struct FrequencyBucket {
  const char* name;
  std::uint32_t count_min;
};

inline constexpr std::array<FrequencyBucket, 3> kFrequencyBuckets = {
    {{"tail", 0}, {"torso", 10}, {"head", 100}}};

// Sums of what each bucket's labels contribute: P@k and PSP@k are those of the whole with only the
// bucket's hits counted, so that the buckets' add up to the whole's.
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

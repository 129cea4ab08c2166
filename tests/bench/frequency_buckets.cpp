#include "tests/bench/frequency_buckets.hpp"

namespace gleaner {
namespace {

constexpr std::uint32_t kNoLabel = ~std::uint32_t{0};

std::size_t bucket_of(std::uint32_t count) {
  std::size_t bucket = 0;
  while (bucket + 1 < kFrequencyBuckets.size() && count >= kFrequencyBuckets[bucket + 1].count_min)
    ++bucket;
  return bucket;
}

}  // namespace

BucketSums::BucketSums(std::span<const std::uint32_t> label_counts,
                       const InversePropensities& propensities)
    : label_counts_(label_counts), sums_(kFrequencyBuckets.size(), MetricSums(propensities)) {}

void BucketSums::add(std::span<const std::uint32_t> labels, std::span<const std::uint32_t> ranked) {
  for (std::size_t bucket = 0; bucket < sums_.size(); ++bucket) {
    ranked_.assign(ranked.begin(), ranked.end());
    for (std::uint32_t& label : ranked_) {
      if (bucket_of(label_counts_[label]) != bucket) label = kNoLabel;
    }
    sums_[bucket].add(labels, ranked_);
  }
}

std::array<Precision, kFrequencyBuckets.size()> BucketSums::precision() const {
  std::array<Precision, kFrequencyBuckets.size()> result;
  for (std::size_t bucket = 0; bucket < sums_.size(); ++bucket) {
    result[bucket] = sums_[bucket].precision();
  }
  return result;
}

}  // namespace gleaner

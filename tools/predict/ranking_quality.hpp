// Measures how good ranked labels are: precision, nDCG, recall, and hits by how frequent labels
// were.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "common/model/precision.hpp"
#include "tools/dataset/dataset_statistics.hpp"

namespace gleaner {

// Metrics beyond the master's: nDCG and recall, and hits by the labels' frequency in training. Sums
// are integers or run in the examples' order, so the result depends on neither threads nor batches.
// One thread.
class Quality {
 public:
  static constexpr auto kDepths = Precision::kDepths;
  static constexpr std::uint32_t kDepthMax = kDepths.back();

  // Both outlive this.
  Quality(const InversePropensities& propensities, const FrequencyClasses& classes)
      : sums_(propensities), classes_(classes) {}

  // As MetricSums::add: examples without labels do not count.
  void add(std::span<const std::uint32_t> labels, std::span<const std::uint32_t> ranked);

  struct ByClass {
    std::uint64_t true_labels = 0;
    std::array<std::uint64_t, 3> hits{};  // by depth
  };

  [[nodiscard]] Precision precision() const { return sums_.precision(); }

  [[nodiscard]] std::uint64_t points() const { return points_; }

  // Means over the examples, by depth.
  [[nodiscard]] double ndcg(std::size_t depth) const;
  [[nodiscard]] double recall(std::size_t depth) const;

  [[nodiscard]] const ByClass& by_class(std::size_t frequency_class) const {
    return by_class_[frequency_class];
  }

 private:
  MetricSums sums_;
  const FrequencyClasses& classes_;
  std::uint64_t points_ = 0;
  std::array<double, 3> ndcg_{};
  std::array<double, 3> recall_{};
  std::array<ByClass, kFrequencyClasses> by_class_{};
};

}  // namespace gleaner

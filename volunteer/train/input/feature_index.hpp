// A batch turned around: for each feature that occurs, the examples that have it. Plain storage,
// reused from batch to batch; one thread builds it, any thread may then read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/dataset/packed_dataset.hpp"

namespace gleaner {

class FeatureIndex {
 public:
  // Rows are features 0 .. features - 1 and the bias, row `features`, which every example has with
  // value 1. Features beyond the range are left out.
  explicit FeatureIndex(std::uint32_t features) : features_(features), counts_(features, 0) {}

  void build(std::span<const ExampleView> examples);

  // Distinct rows in the order in which the batch first names them, the bias last.
  [[nodiscard]] std::span<const std::uint32_t> rows() const { return rows_; }

  // The examples that have rows()[index], ascending, and the values they have there.
  [[nodiscard]] std::span<const std::uint32_t> examples_of(std::size_t index) const {
    return std::span(examples_).subspan(offsets_[index], offsets_[index + 1] - offsets_[index]);
  }

  [[nodiscard]] std::span<const float> values_of(std::size_t index) const {
    return std::span(values_).subspan(offsets_[index], offsets_[index + 1] - offsets_[index]);
  }

  // How many of the example's features are within `features`; they ascend, so the others are last.
  static std::size_t known_features(const ExampleView& example, std::uint32_t features);

 private:
  std::uint32_t features_;
  std::vector<std::uint32_t> counts_;  // one a feature; all zero between calls
  std::vector<std::uint32_t> rows_;
  std::vector<std::uint32_t> offsets_;   // rows_.size() + 1
  std::vector<std::uint32_t> examples_;  // as many as there are values
  std::vector<float> values_;
};

}  // namespace gleaner

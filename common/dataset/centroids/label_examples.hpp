// Which training examples bear each label, and the centroid of a label's examples.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "common/dataset/packed_dataset.hpp"
#include "common/result.hpp"

namespace gleaner {

// Four bytes per label entry of the training data, and eight per label. Any thread may ask.
class LabelExamples {
 public:
  // Reads the whole file; the error names damage in it. kResources: it has more than 2^32 examples.
  static Result<LabelExamples> open(const PackedDataset& train);

  // The label's examples, ascending.
  [[nodiscard]] std::span<const std::uint32_t> of(std::uint32_t label) const {
    return std::span(examples_).subspan(offsets_[label], offsets_[label + 1] - offsets_[label]);
  }

  // The examples of all labels, one label after the other.
  [[nodiscard]] std::span<const std::uint32_t> all() const { return examples_; }

 private:
  std::vector<std::uint64_t> offsets_;   // of a label's examples, and the end of the last
  std::vector<std::uint32_t> examples_;  // by label
};

// The sum of examples, each scaled to unit length, for one label at a time. Eight bytes per
// feature.
class LabelCentroid {
 public:
  explicit LabelCentroid(std::uint32_t features) : sums_(features) {}

  void add(const ExampleView& example);

  // Calls `visit(feature, sum)` for each feature whose sum is not 0, in no order, and is empty
  // afterwards.
  template <typename Visit>
  void take(const Visit& visit) {
    for (const std::uint32_t feature : features_) {
      const double sum = std::exchange(sums_[feature], 0);
      if (sum != 0) visit(feature, sum);
    }
    features_.clear();
  }

 private:
  std::vector<double> sums_;
  std::vector<std::uint32_t> features_;  // whose sums may not be 0; some twice
};

}  // namespace gleaner

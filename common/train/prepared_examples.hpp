// Training examples with some of their features left out, so that no label is learned from a single
// one. Which are left out is a function of (seed, batch, position, feature); the others are scaled
// up, so that evaluation needs no correction. Plain storage, reused; one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/data/packed_dataset.hpp"
#include "common/ids.hpp"
#include "common/model/model_config.hpp"

namespace gleaner {

class FeatureDropout {
 public:
  explicit FeatureDropout(const ModelConfig& config);

  // The batch's examples as training sees them, valid until the next call; `examples` themselves
  // when nothing is dropped.
  std::span<const ExampleView> apply(BatchIndex batch, std::span<const ExampleView> examples);

 private:
  std::uint64_t seed_;
  std::uint64_t threshold_;  // of 2^24
  float keep_scale_;
  std::vector<std::uint32_t> features_;
  std::vector<float> values_;
  std::vector<ExampleView> thinned_;
};

// Examples as wide rows see them: scaled to unit length, and without the features that the model
// does not know. Owns the scaled values; the views are valid as long as it and the examples are.
// One thread at a time.
class UnitLengths {
 public:
  // `features`: of the model; the length is over these.
  UnitLengths(std::span<const ExampleView> examples, std::uint32_t features);
  UnitLengths(const UnitLengths&) = delete;
  UnitLengths& operator=(const UnitLengths&) = delete;

  // Without labels.
  [[nodiscard]] std::span<const ExampleView> views() const { return views_; }

 private:
  std::vector<float> values_;
  std::vector<ExampleView> views_;
};

// A batch turned around: for each feature that occurs, the examples that have it. Plain storage,
// reused from batch to batch; one thread builds it, any thread may then read.
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

// Feature dropout: training examples with some features left out, so that no label is learned from
// a single feature. (seed, batch, position, feature) decides whether a feature is left out. The
// other values are scaled up, so that evaluation needs no correction. Memory is reused; one thread
// at a time.
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

  // The batch's examples as training sees them, valid until the next call. Returns `examples`
  // itself when nothing is dropped.
  std::span<const ExampleView> apply(BatchIndex batch, std::span<const ExampleView> examples);

 private:
  std::uint64_t seed_;
  std::uint64_t threshold_;  // of 2^24
  float keep_scale_;
  std::vector<std::uint32_t> features_;
  std::vector<float> values_;
  std::vector<ExampleView> thinned_;
};

// Examples as wide rows see them: scaled to unit length, without features that the model does not
// know. Owns the scaled values; the views are valid as long as this object and the examples are.
// One thread at a time.
class UnitLengths {
 public:
  // `features`: number of the model's features; the length is over known features only.
  UnitLengths(std::span<const ExampleView> examples, std::uint32_t features);
  UnitLengths(const UnitLengths&) = delete;
  UnitLengths& operator=(const UnitLengths&) = delete;

  // Without labels.
  [[nodiscard]] std::span<const ExampleView> views() const { return views_; }

 private:
  std::vector<float> values_;
  std::vector<ExampleView> views_;
};

// A batch by feature: for each feature that occurs, the examples that have it. Memory is reused
// from batch to batch. One thread builds it; any thread may then read.
class FeatureIndex {
 public:
  // Rows are features 0 .. features - 1 and the bias (row `features`), which every example has with
  // value 1. Features beyond the range are left out.
  explicit FeatureIndex(std::uint32_t features) : features_(features), counts_(features, 0) {}

  void build(std::span<const ExampleView> examples);

  // Distinct rows in the order of their first occurrence in the batch, the bias last.
  [[nodiscard]] std::span<const std::uint32_t> rows() const { return rows_; }

  // The examples that have rows()[index], ascending; values_of() is parallel.
  [[nodiscard]] std::span<const std::uint32_t> examples_of(std::size_t index) const {
    return std::span(examples_).subspan(offsets_[index], offsets_[index + 1] - offsets_[index]);
  }

  [[nodiscard]] std::span<const float> values_of(std::size_t index) const {
    return std::span(values_).subspan(offsets_[index], offsets_[index + 1] - offsets_[index]);
  }

  // The number of the example's features below `features`. Features ascend, so the unknown are
  // last.
  static std::size_t known_features(const ExampleView& example, std::uint32_t features);

 private:
  std::uint32_t features_;
  std::vector<std::uint32_t> counts_;  // one per feature; all zero between calls
  std::vector<std::uint32_t> rows_;
  std::vector<std::uint32_t> offsets_;   // rows_.size() + 1
  std::vector<std::uint32_t> examples_;  // one per value
  std::vector<float> values_;
};

}  // namespace gleaner

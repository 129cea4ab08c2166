// The nearest label centroids of examples in the space of all features: a baseline without
// training. A label's centroid is the sum of its training examples, each scaled to unit length;
// nearest means highest cosine. Files whose rows are tf-idf give centroids of tf-idf.
//
// Only one centroid is in memory at a time: memory is four bytes per label entry of the training
// data, twelve per feature, and eight per feature entry of the examples. Training examples are read
// in random order, each once per label. Any thread may ask.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "common/data/packed_dataset.hpp"
#include "common/result.hpp"

namespace gleaner {

// The training examples of each label. Memory is four bytes per label entry of the training data,
// and eight per label. Any thread may ask.
class LabelExamples {
 public:
  // Reads the whole file; the error names damage in it. kResources for more than 2^32 examples.
  static Result<LabelExamples> open(const PackedDataset& train);

  // The label's examples, ascending.
  [[nodiscard]] std::span<const std::uint32_t> of(std::uint32_t label) const {
    return std::span(examples_).subspan(offsets_[label], offsets_[label + 1] - offsets_[label]);
  }

  // The examples of all labels, label by label.
  [[nodiscard]] std::span<const std::uint32_t> all() const { return examples_; }

 private:
  std::vector<std::uint64_t> offsets_;   // where a label's examples begin, and the end of the last
  std::vector<std::uint32_t> examples_;  // by label
};

// The sum of a label's examples, each scaled to unit length, for one label at a time. Memory is
// eight bytes per feature.
class LabelCentroid {
 public:
  explicit LabelCentroid(std::uint32_t features) : sums_(features) {}

  void add(const ExampleView& example, double weight = 1);

  // Calls `visit(feature, sum)` for each feature with a sum other than 0, in no order. The object
  // is empty afterwards.
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
  std::vector<std::uint32_t> features_;  // features whose sums may not be 0; some twice
};

class NearestCentroids {
 public:
  // Finds the training examples of each label. `train` outlives this object. The error names damage
  // in the file.
  static Result<NearestCentroids> open(const PackedDataset& train);

  // Approximate number of additions of nearest(): once for the training data, and for each example.
  // The latter is estimated from a few hundred labels.
  struct Work {
    double of_centroids = 0;
    double per_example = 0;
  };

  [[nodiscard]] Work work(std::span<const ExampleView> examples) const;

  // The nearest labels of each example, the nearest first, equally near ones by number: `top_k` (at
  // least 1) or all labels if there are fewer. Ignores features that the training data does not
  // have. kShuttingDown when `is_stopping` is set meanwhile.
  [[nodiscard]] Result<std::vector<std::vector<std::uint32_t>>> nearest(
      std::span<const ExampleView> examples, std::size_t top_k,
      const std::atomic<bool>& is_stopping) const;

 private:
  class Postings;
  class Reader;

  NearestCentroids(const PackedDataset& train, LabelExamples examples)
      : train_(&train), examples_(std::move(examples)) {}

  const PackedDataset* train_;
  LabelExamples examples_;
};

}  // namespace gleaner

// The nearest label centroids of examples, in the space of all features: what any training has to
// beat, since it needs none. A label's centroid is the sum of its training examples, each scaled to
// unit length; near is what has a high cosine. Files whose rows are tf-idf give centroids of
// tf-idf.
//
// One label is in hand at a time, so that no centroid is kept: memory is four bytes per label entry
// of the training data, twelve per feature, and eight per feature entry of the examples. Training
// examples are read in no order, each once per label it bears. Any thread may ask.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "common/dataset/centroids/label_examples.hpp"
#include "common/dataset/packed_dataset.hpp"
#include "common/result.hpp"

namespace gleaner {

class NearestCentroids {
 public:
  // Finds which training examples bear a label. `train` outlives this. The error names damage in
  // the file.
  static Result<NearestCentroids> open(const PackedDataset& train);

  // About how many additions nearest() makes for the training data alone, and for each of
  // `examples` besides; the latter from a few hundred labels.
  struct Work {
    double of_centroids = 0;
    double per_example = 0;
  };

  [[nodiscard]] Work work(std::span<const ExampleView> examples) const;

  // For each of `examples` its nearest labels, the nearest first, equally near ones by number: as
  // many as `top_k`, which is at least 1, or all. Features that the training data does not know
  // count for nothing. kShuttingDown when `is_stopping` was set meanwhile.
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

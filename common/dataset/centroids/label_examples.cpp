#include "common/dataset/centroids/label_examples.hpp"

#include <cmath>
#include <limits>
#include <numeric>

namespace gleaner {

Result<LabelExamples> LabelExamples::open(const PackedDataset& train) {
  if (train.points() > std::numeric_limits<std::uint32_t>::max()) {
    return Error{ErrorCode::kResources, "there are more than 2^32 training examples"};
  }
  if (auto sound = train.verify_all(); !sound) return sound.error();
  LabelExamples found;
  std::vector<std::uint64_t>& offsets = found.offsets_;
  offsets.resize(std::uint64_t{train.labels()} + 1);
  for (std::uint64_t p = 0; p < train.points(); ++p) {
    for (const std::uint32_t label : train.example(p).labels) ++offsets[label + 1];
  }
  std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
  found.examples_.resize(offsets.back());
  std::vector<std::uint64_t> next(offsets.begin(), offsets.end() - 1);
  for (std::uint64_t p = 0; p < train.points(); ++p) {
    for (const std::uint32_t label : train.example(p).labels) {
      found.examples_[next[label]++] = static_cast<std::uint32_t>(p);
    }
  }
  return found;
}

void LabelCentroid::add(const ExampleView& example) {
  double squares = 0;
  for (const float value : example.values) squares += double{value} * double{value};
  const double scale = squares > 0 ? 1 / std::sqrt(squares) : 0;
  for (std::size_t i = 0; i < example.features.size(); ++i) {
    double& sum = sums_[example.features[i]];
    if (sum == 0) features_.push_back(example.features[i]);
    sum += double{example.values[i]} * scale;
  }
}

}  // namespace gleaner

#include "volunteer/train/input/feature_index.hpp"

namespace gleaner {

std::size_t FeatureIndex::known_features(const ExampleView& example, std::uint32_t features) {
  std::size_t count = example.features.size();
  while (count > 0 && example.features[count - 1] >= features) --count;
  return count;
}

// A counting sort that never walks the whole range of features: a batch names few of them.
void FeatureIndex::build(std::span<const ExampleView> examples) {
  std::size_t entries = examples.size();
  std::size_t row_count = 0;
  for (const ExampleView& example : examples) {
    const std::size_t count = known_features(example, features_);
    entries += count;
    // One more than there is room for: what is not new is written too, and written over.
    rows_.resize(row_count + count + 1);
    for (const std::uint32_t feature : example.features.first(count)) {
      rows_[row_count] = feature;
      row_count += counts_[feature]++ == 0 ? 1 : 0;
    }
  }
  rows_.resize(row_count);
  offsets_.resize(rows_.size() + 2);
  offsets_[0] = 0;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    offsets_[r + 1] = offsets_[r] + counts_[rows_[r]];
    counts_[rows_[r]] = offsets_[r];  // from here on: where the row's next entry goes
  }
  examples_.resize(entries);
  values_.resize(entries);
  std::uint32_t next_bias = offsets_[rows_.size()];
  for (std::uint32_t e = 0; e < examples.size(); ++e) {
    const ExampleView& example = examples[e];
    const std::size_t count = known_features(example, features_);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t at = counts_[example.features[i]]++;
      examples_[at] = e;
      values_[at] = example.values[i];
    }
    examples_[next_bias] = e;
    values_[next_bias++] = 1.0F;
  }
  for (const std::uint32_t row : rows_) counts_[row] = 0;
  rows_.push_back(features_);
  offsets_[rows_.size()] = next_bias;
}

}  // namespace gleaner

#include "common/train/prepared_examples.hpp"

#include <algorithm>
#include <cmath>

#include "common/counter_random.hpp"

namespace gleaner {

FeatureDropout::FeatureDropout(const ModelConfig& config)
    : seed_(config.seed),
      threshold_(static_cast<std::uint64_t>(config.feature_dropout * 16777216.0F)),
      keep_scale_(1.0F / (1.0F - config.feature_dropout)) {}

std::span<const ExampleView> FeatureDropout::apply(BatchIndex batch,
                                                   std::span<const ExampleView> examples) {
  if (threshold_ == 0) return examples;
  std::size_t entries = 0;
  for (const ExampleView& example : examples) entries += example.features.size();
  // The views made below point into this storage: it must not move.
  features_.resize(entries);
  values_.resize(entries);
  thinned_.clear();
  std::size_t kept = 0;
  for (std::size_t position = 0; position < examples.size(); ++position) {
    const ExampleView& example = examples[position];
    const std::size_t begin = kept;
    for (std::size_t i = 0; i < example.features.size(); ++i) {
      const std::uint64_t random =
          counter_random(seed_, Purpose::kFeatureDropout, batch, position, example.features[i]);
      if (random >> 40 < threshold_) continue;
      features_[kept] = example.features[i];
      values_[kept++] = example.values[i] * keep_scale_;
    }
    thinned_.push_back({example.labels, std::span(features_).subspan(begin, kept - begin),
                        std::span(values_).subspan(begin, kept - begin)});
  }
  return thinned_;
}

UnitLengths::UnitLengths(std::span<const ExampleView> examples, std::uint32_t features) {
  std::size_t count = 0;
  for (const ExampleView& example : examples) count += example.features.size();
  values_.reserve(count);  // the views made below point into it: it must not move
  views_.reserve(examples.size());
  for (const ExampleView& example : examples) {
    // Features ascend, so the unknown are last.
    const auto known = static_cast<std::size_t>(
        std::ranges::lower_bound(example.features, features) - example.features.begin());
    const auto values = example.values.first(known);
    // In double and in the order of the features, so that the bits are the same everywhere.
    double squares = 0;
    for (const float value : values) squares += double{value} * double{value};
    const double scale = squares > 0 ? 1 / std::sqrt(squares) : 0;
    const std::size_t first = values_.size();
    for (const float value : values) values_.push_back(static_cast<float>(double{value} * scale));
    views_.push_back({{}, example.features.first(known), {values_.data() + first, known}});
  }
}

std::size_t FeatureIndex::known_features(const ExampleView& example, std::uint32_t features) {
  std::size_t count = example.features.size();
  while (count > 0 && example.features[count - 1] >= features) --count;
  return count;
}

// A counting sort that never walks the whole range of features, since a batch has few of them.
void FeatureIndex::build(std::span<const ExampleView> examples) {
  std::size_t entries = examples.size();
  std::size_t row_count = 0;
  for (const ExampleView& example : examples) {
    const std::size_t count = known_features(example, features_);
    entries += count;
    // One more than fits: a row that is not new is written too, and overwritten by the next.
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

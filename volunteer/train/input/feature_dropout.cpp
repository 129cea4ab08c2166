#include "volunteer/train/input/feature_dropout.hpp"

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
  // Views into the storage are made below: it must not move.
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

}  // namespace gleaner

#include "common/train/wide/wide_batch.hpp"

#include <algorithm>

#include "common/train/prepared_examples.hpp"

namespace gleaner {
namespace {

void add_features(std::span<const ExampleView> examples, WideBatch& batch) {
  std::size_t entries = 0;
  for (const ExampleView& example : examples) entries += example.features.size();
  batch.features.reserve(entries);
  batch.values.reserve(entries);
  batch.ends.reserve(examples.size());
  for (const ExampleView& example : examples) {
    batch.features.insert(batch.features.end(), example.features.begin(), example.features.end());
    batch.values.insert(batch.values.end(), example.values.begin(), example.values.end());
    batch.ends.push_back(static_cast<std::uint32_t>(batch.features.size()));
  }
}

void add_labels(std::span<const ExampleView> examples, WideBatch& batch) {
  for (std::uint32_t e = 0; e < examples.size(); ++e) {
    for (const std::uint32_t neuron : examples[e].labels) batch.labels.push_back({neuron, e});
  }
  std::ranges::sort(batch.labels);
}

}  // namespace

std::uint64_t WideBatch::memory_bytes() const {
  return sizeof(WideBatch) + features.capacity() * (sizeof(std::uint32_t) + sizeof(float)) +
         ends.capacity() * sizeof(std::uint32_t) + labels.capacity() * sizeof(Label);
}

WideBatch prepare_training(const ModelConfig& config, BatchIndex batch,
                           std::span<const ExampleView> examples) {
  WideBatch prepared;
  prepared.batch = batch;
  const UnitLengths scaled(examples, config.features);
  FeatureDropout dropout(config);
  add_features(dropout.apply(batch, scaled.views()), prepared);
  add_labels(examples, prepared);
  return prepared;
}

WideBatch prepare_test(const ModelConfig& config, std::span<const ExampleView> examples) {
  WideBatch prepared;
  add_features(UnitLengths(examples, config.features).views(), prepared);
  return prepared;
}

}  // namespace gleaner

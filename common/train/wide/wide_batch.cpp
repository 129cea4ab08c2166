#include "common/train/wide/wide_batch.hpp"

#include <algorithm>

#include "common/counter_random.hpp"
#include "common/limits.hpp"
#include "common/train/prepared_examples.hpp"

namespace gleaner {
namespace {

static_assert(kBatchExamplesMax <= 1u << 16, "who drew an example is kept in 16 bits");

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

// Draws other examples for each example. A counting sort orders the draws by the drawn example.
void add_drawers(const ModelConfig& config, WideBatch& batch) {
  const std::uint32_t examples = batch.examples();
  std::vector<std::uint16_t> drawn;
  drawn.reserve(std::size_t{examples} * config.random_negatives);
  batch.drawer_ends.assign(examples, 0);
  for (std::uint32_t e = 0; e < examples; ++e) {
    for (std::uint32_t draw = 0; draw < config.random_negatives; ++draw) {
      const std::uint64_t other = below(
          counter_random(config.seed, Purpose::kRandomNegative, batch.batch, e, draw), examples);
      drawn.push_back(static_cast<std::uint16_t>(other));
      if (other + 1 < examples) ++batch.drawer_ends[other + 1];
    }
  }
  for (std::uint32_t e = 1; e < examples; ++e) batch.drawer_ends[e] += batch.drawer_ends[e - 1];
  batch.drawers.resize(drawn.size());
  // Each end moves from where an example's drawers begin to where they end.
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    batch.drawers[batch.drawer_ends[drawn[i]]++] =
        static_cast<std::uint16_t>(i / config.random_negatives);
  }
}

}  // namespace

std::uint64_t WideBatch::memory_bytes() const {
  return sizeof(WideBatch) + features.capacity() * (sizeof(std::uint32_t) + sizeof(float)) +
         (ends.capacity() + drawer_ends.capacity()) * sizeof(std::uint32_t) +
         drawers.capacity() * sizeof(std::uint16_t) + labels.capacity() * sizeof(Label);
}

WideBatch prepare_training(const ModelConfig& config, BatchIndex batch,
                           std::span<const ExampleView> examples) {
  WideBatch prepared;
  prepared.batch = batch;
  const UnitLengths scaled(examples, config.features);
  FeatureDropout dropout(config);
  add_features(dropout.apply(batch, scaled.views()), prepared);
  add_labels(examples, prepared);
  if (config.sampling != Sampling::kAll) add_drawers(config, prepared);
  return prepared;
}

WideBatch prepare_test(const ModelConfig& config, std::span<const ExampleView> examples) {
  WideBatch prepared;
  add_features(UnitLengths(examples, config.features).views(), prepared);
  return prepared;
}

}  // namespace gleaner

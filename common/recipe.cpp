#include "common/recipe.hpp"

#include <algorithm>
#include <bit>

namespace gleaner {
namespace {

// Up to so many labels, training all neurons is as cheap as choosing among them.
constexpr std::uint32_t kLabelsTrainedWhole = 2'000;
// Active neurons besides the true labels: fewer cost precision, more cost time. In a narrow layer a
// larger part of it competes for each example.
constexpr std::uint32_t kNarrowLabels = 10'000;
constexpr std::uint32_t kActiveNarrow = 1'500;
constexpr std::uint32_t kActiveWide = 1'000;
constexpr std::uint32_t kActiveShare = 200;  // of very wide layers: one neuron in so many
// Of these, one in so many is drawn at random: it meets neurons that no bucket brings.
constexpr std::uint32_t kRandomShare = 10;
constexpr std::uint32_t kNeuronsPerBucket = 200;
// Rates rise over so many batches: without, the first steps of rows that have seen one example
// decide too much (1.3 points of P@1 on eurlex-4.3k).
constexpr std::uint32_t kWarmupBatches = 160;
constexpr std::uint64_t kRoundBatchesMin = 64;
// A round visits each row about so often, so that storing the rows it touched (about 5 us of
// processor a row) is cheap beside training them (about 0.1 us a visit).
constexpr std::uint64_t kVisitsPerRound = 350;

// Rounds of about equal length within an epoch, each long enough to be worth a checkpoint.
std::uint32_t round_batches(const ModelConfig& config) {
  const std::uint64_t active = config.sampling == Sampling::kAll
                                   ? config.labels
                                   : config.active_cap + config.random_negatives;
  const std::uint64_t examples = kVisitsPerRound * config.labels / active;
  const std::uint64_t wanted = std::max(kRoundBatchesMin, examples / config.batch_examples);
  const std::uint64_t epoch = (config.points + config.batch_examples - 1) / config.batch_examples;
  const std::uint64_t rounds = std::max<std::uint64_t>(1, epoch / wanted);
  return static_cast<std::uint32_t>((epoch + rounds - 1) / rounds);
}

}  // namespace

ModelConfig recipe(const DatasetFacts& facts) {
  ModelConfig config;
  config.points = facts.points;
  config.features = facts.features;
  config.labels = facts.labels;
  config.output_shards = std::min<std::uint32_t>(16, facts.labels);
  config.sampling = facts.labels <= kLabelsTrainedWhole ? Sampling::kAll : Sampling::kLsh;
  const std::uint32_t active = facts.labels <= kNarrowLabels
                                   ? kActiveNarrow
                                   : std::max(kActiveWide, facts.labels / kActiveShare);
  config.random_negatives = active / kRandomShare;
  config.active_cap = active - config.random_negatives;
  config.hash_bits = static_cast<std::uint32_t>(
      std::clamp(static_cast<int>(std::bit_width(facts.labels / kNeuronsPerBucket)) - 1, 1, 20));
  config.tables = 50;
  config.batch_examples = 128;
  config.round_batches = round_batches(config);
  config.staleness = 1;
  config.output_rate = 3e-3F;
  config.input_rate = 6e-3F;
  config.rate_decay = 0.9F;
  config.warmup_batches = kWarmupBatches;
  config.input_scale = 0.2F;
  return config;
}

}  // namespace gleaner

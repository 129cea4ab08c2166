#include "master/recipe/recipe_trials.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>

#include "common/model/recipe.hpp"
#include "common/model/run_plan.hpp"
#include "common/model/shard_map.hpp"
#include "master/in_process_training.hpp"
#include "master/recipe/recipe_chosen.hpp"
#include "storage/engine/memory_store.hpp"
#include "storage/infer/stored_model.hpp"
#include "storage/keep/wide_start.hpp"

namespace gleaner {
namespace {

constexpr std::uint32_t kTrialShards = 8;
constexpr std::uint32_t kDepth = 5;
// 1 / log2(rank + 1).
constexpr std::array<double, kDepth> kDiscounts = {1.0, 0.6309297535714575, 0.5,
                                                   0.43067655807339306, 0.38685280723454163};

// `ranked`: the answer's labels, best first. `labels` ascend and are not empty.
double quality_of(std::span<const std::uint32_t> labels, std::span<const ScoredLabel> ranked) {
  double gain = 0;
  double best = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(kDepth, labels.size()); ++i) {
    best += kDiscounts[i];
  }
  double first = 0;
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    if (!std::ranges::binary_search(labels, ranked[i].label)) continue;
    gain += kDiscounts[i];
    if (i == 0) first = 1;
  }
  return (first + gain / best) / 2;
}

// The rows that the data would have begun with at `ratio` times the scale.
ShardRows scaled(ShardRows rows, float ratio) {
  for (std::size_t i = 0; i < rows.values.size(); ++i) {
    const bool is_bias = i % (kWideWeights + 1) == kWideWeights;
    if (!is_bias) rows.values[i] *= ratio;
  }
  for (float& own : rows.states) own *= ratio;
  return rows;
}

// `candidate` with the sizes of a part, and what the recipe derives from them.
ModelConfig fitted(ModelConfig candidate, const PackedDataset& train,
                   std::optional<std::uint32_t> epochs_max) {
  const ModelConfig own = recipe(facts_of(train), {.hidden = candidate.hidden}).model;
  candidate.data_fingerprint = train.fingerprint();
  candidate.points = own.points;
  candidate.labels = own.labels;
  candidate.epochs = std::min(own.epochs, epochs_max.value_or(own.epochs));
  candidate.batch_examples = std::min(candidate.batch_examples, own.batch_examples);
  candidate.round_batches = static_cast<std::uint32_t>(batches_per_epoch(candidate));
  candidate.warmup_batches = std::min(candidate.warmup_batches, own.warmup_batches);
  candidate.rehash_batches = own.rehash_batches;
  candidate.output_shards = std::min(kTrialShards, own.labels);
  return candidate;
}

}  // namespace

struct RecipeTrials::Start {
  float scale = 0;
  std::uint32_t wide_rows = 0;
  std::unique_ptr<WideStart> made;
  InitialRows rows;
  std::map<std::pair<ShardId, std::uint32_t>, ShardRows> known;  // by shard and first row

  Result<void> open(const ModelConfig& model, const PackedDataset& train) {
    auto opened = WideStart::open(model, train);
    if (!opened) return opened.error();
    const auto sizes = (*opened)->sizes();
    if (!sizes) return sizes.error();
    scale = model.wide_scale;
    wide_rows = sizes->rows;
    rows = (*opened)->rows();
    made = std::move(*opened);
    return {};
  }

  Result<ShardRows> scaled_rows(float wanted, ShardId shard, std::uint32_t begin,
                                std::uint32_t end) {
    auto found = known.find({shard, begin});
    if (found == known.end()) {
      auto part = rows(shard, begin, end);
      if (!part) return part.error();
      found = known.emplace(std::pair(shard, begin), std::move(*part)).first;
    }
    return scaled(found->second, wanted / scale);
  }
};

RecipeTrials::RecipeTrials(std::span<const TrialData> parts, ThreadPool& pool)
    : parts_(parts), pool_(pool), starts_(parts.size()) {}

RecipeTrials::~RecipeTrials() = default;

Result<Quality> RecipeTrials::train(const ModelConfig& candidate,
                                    std::optional<std::uint32_t> epochs_max) {
  Quality quality;
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    auto trained = train(part, fitted(candidate, *parts_[part].train, epochs_max), quality);
    if (!trained) return trained.error();
  }
  return quality;
}

Result<void> RecipeTrials::train(std::size_t part, ModelConfig model, Quality& quality) {
  const TrialData& data = parts_[part];
  InitialRows rows;
  if (is_wide(model)) {
    Start& start = starts_[part];
    if (!start.made) {
      if (auto opened = start.open(model, *data.train); !opened) return opened;
    }
    model.wide_rows = start.wide_rows;
    rows = [&start, scale = model.wide_scale](ShardId shard, std::uint32_t begin,
                                              std::uint32_t end) {
      return start.scaled_rows(scale, shard, begin, end);
    };
  }
  auto run = RunStore::create_or_open(std::make_unique<MemoryStore>(), {model, {}},
                                      count_labels(*data.train), rows);
  if (!run) return run.error();
  const RoundIndex rounds = RunPlan(model).round_count();
  if (auto trained = train_in_process(**run, *data.train, rounds, {}, pool_, [] {}); !trained) {
    return trained.error();
  }
  auto trained = StoredModel::open(std::move(*run), pool_);
  if (!trained) return trained.error();
  std::vector<ExampleView> examples;
  for (const Point& point : data.held_out) examples.push_back({{}, point.features, point.values});
  const auto answers = (*trained)->top(examples, kDepth);
  if (!answers) return answers.error();
  const std::size_t entries = (*trained)->entries(kDepth);
  for (std::size_t i = 0; i < examples.size(); ++i) {
    if (data.held_out[i].labels.empty()) continue;
    quality.push_back(
        quality_of(data.held_out[i].labels, std::span(*answers).subspan(i * entries, entries)));
  }
  return {};
}

}  // namespace gleaner

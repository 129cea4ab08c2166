#include "master/recipe/wide_trial.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>

#include "common/limits.hpp"
#include "common/model/recipe.hpp"
#include "common/model/run_plan.hpp"
#include "common/model/shard_map.hpp"
#include "common/train/kernels.hpp"
#include "common/train/wide/wide_batch.hpp"
#include "common/train/wide/wide_index.hpp"
#include "common/train/wide/wide_round.hpp"
#include "master/recipe/recipe_chosen.hpp"
#include "storage/keep/wide_start.hpp"

namespace gleaner {
namespace {

constexpr std::uint32_t kTrialShards = 8;
constexpr std::uint32_t kDepth = 5;
// 1 / log2(rank + 1).
constexpr std::array<double, kDepth> kDiscounts = {1.0, 0.6309297535714575, 0.5,
                                                   0.43067655807339306, 0.38685280723454163};

// `ranked`: the answer's labels, best first. `labels` ascend and are not empty.
double quality_of(std::span<const std::uint32_t> labels, std::span<const std::uint32_t> ranked) {
  double gain = 0;
  double best = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(kDepth, labels.size()); ++i) {
    best += kDiscounts[i];
  }
  double first = 0;
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    if (!std::ranges::binary_search(labels, ranked[i])) continue;
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

std::vector<WideBatch> prepared_epoch(const ModelConfig& model, const RunPlan& plan,
                                      const ShardMap& map, const PackedDataset& train,
                                      std::uint32_t epoch, ThreadPool& pool) {
  const BatchIndex first = plan.round_begin(epoch);
  std::vector<WideBatch> batches(plan.round_end(epoch) - first);
  pool.parallel_for(batches.size(), [&](std::size_t index, unsigned) {
    std::vector<std::vector<std::uint32_t>> neurons;
    std::vector<ExampleView> examples;
    const std::vector<std::uint64_t> points = plan.points_of(first + index);
    neurons.reserve(points.size());
    for (const std::uint64_t point : points) {
      ExampleView example = train.example(point);
      auto& own = neurons.emplace_back();
      for (const std::uint32_t label : example.labels) own.push_back(map.neuron_of_label(label));
      std::ranges::sort(own);
      example.labels = own;
      examples.push_back(example);
    }
    batches[index] = prepare_training(model, first + index, examples);
  });
  return batches;
}

}  // namespace

Result<std::unique_ptr<WideTrials>> WideTrials::open(const ModelConfig& model,
                                                     std::span<const TrialData> parts,
                                                     ThreadPool& pool) {
  std::unique_ptr<WideTrials> trials(new WideTrials(pool));
  for (const TrialData& part : parts) {
    if (auto added = trials->add(model, part); !added) return added.error();
  }
  return trials;
}

Result<void> WideTrials::add(const ModelConfig& model, const TrialData& data) {
  Part part{&data, model, count_labels(*data.train), {}};
  const ModelConfig schedule =
      recipe(facts_of(*data.train), {.epochs = kTrialEpochsMax, .hidden = 0}).model;
  part.model.points = schedule.points;
  part.model.labels = schedule.labels;
  part.model.epochs = schedule.epochs;
  part.model.batch_examples = std::min(model.batch_examples, schedule.batch_examples);
  part.model.rehash_batches = schedule.rehash_batches;
  part.model.warmup_batches = std::min(model.warmup_batches, schedule.warmup_batches);
  part.model.round_batches = static_cast<std::uint32_t>(batches_per_epoch(part.model));
  part.model.output_shards = std::min(kTrialShards, schedule.labels);
  auto start = WideStart::open(part.model, *data.train);
  if (!start) return start.error();
  const auto sizes = (*start)->sizes();
  if (!sizes) return sizes.error();
  part.model.wide_rows = sizes->rows;
  const InitialRows rows = (*start)->rows();
  const ShardMap map(part.model);
  for (std::uint32_t shard = 0; shard < part.model.output_shards; ++shard) {
    auto of_shard = rows(ShardId{shard}, 0, map.row_count(ShardId{shard}));
    if (!of_shard) return of_shard.error();
    part.rows.push_back(std::move(*of_shard));
  }
  parts_.push_back(std::move(part));
  return {};
}

Result<Quality> WideTrials::try_scale(float scale, std::uint32_t epochs) {
  Quality quality;
  for (const Part& part : parts_) {
    if (auto tried = try_scale(part, scale, epochs, quality); !tried) return tried.error();
  }
  return quality;
}

Result<void> WideTrials::try_scale(const Part& part, float scale, std::uint32_t epochs,
                                   Quality& quality) {
  ModelConfig model = part.model;
  model.wide_scale = scale;
  const ShardMap map(model);
  const RunPlan plan(model);
  std::vector<std::shared_ptr<WideShard>> shards(part.rows.size());
  std::mutex mutex;
  std::optional<Error> refused;
  pool_.parallel_for(shards.size(), [&](std::size_t s, unsigned) {
    const ShardId id{static_cast<std::uint32_t>(s)};
    const NeuronRange neurons = map.neurons(id);
    std::vector<std::uint32_t> counts;
    for (std::uint32_t n = neurons.begin; n < neurons.end; ++n) {
      counts.push_back(part.label_counts[map.label_of_neuron(n)]);
    }
    shards[s] = std::make_shared<WideShard>(model, map, default_kernels(), id, counts);
    if (auto loaded = shards[s]->load(scaled(part.rows[s], scale / part.model.wide_scale));
        !loaded) {
      const std::lock_guard lock(mutex);
      refused = loaded.error();
    }
    shards[s]->finish_loading();
  });
  if (refused) return *refused;
  for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
    const auto batches = prepared_epoch(model, plan, map, *part.data->train, epoch, pool_);
    pool_.parallel_for(shards.size(), [&](std::size_t s, unsigned) {
      WideRound round(model, plan, shards[s], plan.round_begin(epoch));
      for (const WideBatch& batch : batches) round.train(batch, plan.rates(batch.batch).output);
      round.commit();
    });
  }
  std::vector<const WideShard*> trained;
  for (const auto& shard : shards) trained.push_back(shard.get());
  const WideIndex index(model.features, trained);
  const std::vector<Point>& held_out = part.data->held_out;
  std::vector<double> judged(held_out.size(), -1);
  std::vector<WideIndex::Scratch> scratches(pool_.threads());
  pool_.parallel_for(held_out.size(), [&](std::size_t i, unsigned worker) {
    const Point& point = held_out[i];
    if (point.labels.empty()) return;
    const ExampleView view{{}, point.features, point.values};
    const WideBatch example = prepare_test(model, {&view, 1});
    std::array<ScoredNeuron, kDepth> best{};
    const auto answer = std::span(best).first(std::min(kDepth, index.neurons()));
    index.top(example.example(0), answer, scratches[worker]);
    std::vector<std::uint32_t> ranked;
    for (const ScoredNeuron& scored : answer) ranked.push_back(map.label_of_neuron(scored.neuron));
    judged[i] = quality_of(point.labels, ranked);
  });
  std::ranges::copy_if(judged, std::back_inserter(quality), [](double q) { return q >= 0; });
  return {};
}

}  // namespace gleaner

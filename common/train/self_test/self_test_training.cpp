// The self-test's training: a few batches of a tiny network of each kind, with all work between
// batches. Digests cover each batch's results and each round's commits.
#include <algorithm>
#include <memory>
#include <set>

#include "common/counter_random.hpp"
#include "common/model/run_plan.hpp"
#include "common/model/shard_map.hpp"
#include "common/thread_pool.hpp"
#include "common/train/input_layer.hpp"
#include "common/train/self_test/self_test.hpp"
#include "common/train/shard_trainer.hpp"
#include "common/train/wide/wide_trainer.hpp"
#include "common/work/quantized_activations.hpp"
#include "common/work/quantized_gradient.hpp"

namespace gleaner {
namespace {

constexpr std::uint32_t kOwnFeatures = 5;  // of each label

ModelConfig tiny_model(bool is_wide) {
  ModelConfig config;
  config.points = 60;
  config.features = 80;
  config.labels = 70;
  config.output_shards = 2;
  config.batch_examples = 12;
  config.round_batches = 5;
  config.staleness = 1;
  config.active_cap = 24;
  config.random_negatives = 3;
  config.rehash_batches = 2;
  config.feature_dropout = 0.2F;
  config.rate_decay = 0.9F;
  config.warmup_batches = 2;
  if (is_wide) {
    config.hidden = 0;
    config.wide_rows = config.labels / config.output_shards;
    config.output_rate = 0.5F;
    return config;
  }
  config.hidden = 32;
  config.input_shards = 2;
  config.hash_bits = 4;
  config.tables = 6;
  config.dropout = 0.1F;
  return config;
}

// The features of a label's examples, ascending.
std::vector<std::uint32_t> features_of(const ModelConfig& config, std::uint32_t label) {
  std::set<std::uint32_t> features;
  for (std::uint32_t f = 0; f < kOwnFeatures; ++f) {
    features.insert((label * 7 + f * 13) % config.features);
  }
  return {features.begin(), features.end()};
}

// Examples with a structure that can be learned.
struct TinyExamples {
  std::vector<std::vector<std::uint32_t>> labels, features;
  std::vector<std::vector<float>> values;
  std::vector<std::uint32_t> label_counts;

  explicit TinyExamples(const ModelConfig& config) : label_counts(config.labels) {
    for (std::uint64_t point = 0; point < config.points; ++point) {
      Rng rng(config.seed, Purpose::kSelfTest, 100 + point);
      std::set<std::uint32_t> own_labels;
      std::set<std::uint32_t> own_features;
      for (std::uint64_t n = 1 + rng.next_below(3); n > 0; --n) {
        const auto label = static_cast<std::uint32_t>(rng.next_below(config.labels));
        own_labels.insert(label);
        for (const std::uint32_t feature : features_of(config, label)) own_features.insert(feature);
      }
      own_features.insert(static_cast<std::uint32_t>(rng.next_below(config.features)));
      for (const std::uint32_t label : own_labels) ++label_counts[label];
      labels.emplace_back(own_labels.begin(), own_labels.end());
      features.emplace_back(own_features.begin(), own_features.end());
      auto& own_values = values.emplace_back();
      for (std::size_t i = 0; i < own_features.size(); ++i) {
        own_values.push_back(signed_unit(rng.next()));
      }
    }
  }

  [[nodiscard]] std::vector<ExampleView> views(const std::vector<std::uint64_t>& indices) const {
    std::vector<ExampleView> made;
    for (const std::uint64_t i : indices) made.push_back({labels[i], features[i], values[i]});
    return made;
  }
};

// The parts that both kinds of training share.
struct TinyRun {
  ModelConfig config;
  TinyExamples examples{config};
  RunPlan plan{config};
  ShardMap map{config};
  ThreadPool pool{1};
  std::vector<LeaseRef> leases;

  explicit TinyRun(bool is_wide) : config(tiny_model(is_wide)) {}

  [[nodiscard]] LeaseGrant grant(ShardId shard) {
    LeaseGrant grant;
    grant.lease = {shard, LeaseEpoch{1}};
    const NeuronRange range = map.neurons(shard);
    for (std::uint32_t n = range.begin; n < range.end; ++n) {
      grant.label_counts.push_back(examples.label_counts[map.label_of_neuron(n)]);
    }
    leases.push_back(grant.lease);
    return grant;
  }

  // The output neurons of an example's labels, ascending.
  [[nodiscard]] std::vector<std::uint32_t> neurons_of(const ExampleView& example) const {
    std::vector<std::uint32_t> neurons;
    for (const std::uint32_t label : example.labels) neurons.push_back(map.neuron_of_label(label));
    std::ranges::sort(neurons);
    return neurons;
  }

  [[nodiscard]] TrainUnit unit(BatchIndex batch, std::span<const ExampleView> views,
                               const QuantizedActivations& codes) const {
    TrainUnit unit;
    unit.leases = leases;
    UnitBatch& made = unit.batches.emplace_back();
    made.batch = batch;
    made.output_rate = plan.rates(batch).output;
    made.hidden = std::make_shared<const Bytes>(pack(codes));
    made.positives.offsets.push_back(0);
    for (const ExampleView& example : views) {
      const std::vector<std::uint32_t> neurons = neurons_of(example);
      made.positives.neurons.insert(made.positives.neurons.end(), neurons.begin(), neurons.end());
      made.positives.offsets.push_back(static_cast<std::uint32_t>(made.positives.neurons.size()));
    }
    return unit;
  }
};

void add(TestDigest& digest, const SparseUpdate& update) {
  digest.add_all(update.rows);
  digest.add_all(update.scales);
  digest.add_all(update.levels);
  digest.add_all(update.biases);
  digest.add_all(update.states);
}

void add(TestDigest& digest, const ShardOutcome& outcome) {
  digest.add(outcome.gradient_digest);
  digest.add(static_cast<std::uint64_t>(outcome.loss));
  digest.add(std::uint64_t{outcome.active});
}

void add(TestDigest& digest, const ShardTrainer::UnitOutcome& outcome) {
  for (const ShardOutcome& shard : outcome.result.batches.at(0).shards) add(digest, shard);
  for (const ShardCommit& commit : outcome.commits) add(digest, commit.update);
}

// The initial wide rows of a shard, one row per neuron.
ShardRows wide_rows(const TinyRun& run, ShardId shard) {
  ShardRows rows;
  const NeuronRange range = run.map.neurons(shard);
  for (std::uint32_t row = 0; row < range.size(); ++row) {
    const std::uint32_t label = run.map.label_of_neuron(range.begin + row);
    Rng rng(run.config.seed, Purpose::kSelfTest, 1'000 + label);
    std::vector<std::uint32_t> codes = features_of(run.config, label);
    std::vector<float> values(kWideWeights + 1);
    for (std::size_t i = 0; i < codes.size(); ++i) values[i] = 4 * signed_unit(rng.next());
    values.back() = -3.0F;
    codes.resize(kWideWeights, run.config.features);
    rows.rows.push_back(row);
    rows.values.insert(rows.values.end(), values.begin(), values.end());
    rows.states.push_back(0.25F);
    rows.codes.push_back(row);
    rows.codes.insert(rows.codes.end(), codes.begin(), codes.end());
  }
  return rows;
}

// Trains all shards through a round, batch by batch.
void train_wide_round(TinyRun& run, WideTrainer& trainer, RoundIndex round, TestDigest& digest) {
  const BatchIndex first = run.plan.round_begin(round);
  std::vector<TrainUnit> units;
  std::vector<std::unique_ptr<WideRound>> rounds;
  for (const LeaseRef& lease : run.leases) {
    TrainUnit& unit = units.emplace_back();
    unit.leases = {lease};
    unit.batches.push_back({first, {}, {}, run.plan.rates(first).output});
    GLEANER_CHECK(trainer.check(unit).ok());
    rounds.push_back(trainer.begin(unit).value());
  }
  for (BatchIndex batch = first; batch < run.plan.round_end(round); ++batch) {
    std::vector<ExampleView> examples = run.examples.views(run.plan.points_of(batch));
    std::vector<std::vector<std::uint32_t>> neurons;
    for (ExampleView& example : examples) {
      example.labels = neurons.emplace_back(run.neurons_of(example));
    }
    const WideBatch prepared = prepare_training(run.config, batch, examples);
    for (const auto& of_shard : rounds) {
      of_shard->train(prepared, run.plan.rates(batch).output);
      of_shard->flush();
      add(digest, of_shard->outcomes().back());
    }
  }
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    const auto outcome = trainer.finish(units[i], *rounds[i], rounds[i]->commit());
    GLEANER_CHECK(outcome.ok());
    for (const ShardCommit& commit : outcome->commits) add(digest, commit.update);
  }
}

// State of an input layer between a batch's forward and backward passes.
struct InFlight {
  std::vector<ExampleView> examples;
  QuantizedActivations codes;
  std::vector<std::int32_t> gradient;
};

}  // namespace

void train_for_test(const Kernels& kernels, TestDigest& digest) {
  TinyRun run(/*is_wide=*/false);
  InputLayer input(run.config, run.pool, kernels);
  ShardTrainer trainer(run.config, run.pool, kernels);
  for (std::uint32_t shard = 0; shard < run.map.output_shards(); ++shard) {
    const LeaseGrant grant = run.grant(ShardId{shard});
    GLEANER_CHECK(trainer.begin_load(grant).ok() && trainer.finish_load(grant.lease).ok());
  }
  InFlight flight;
  for (BatchIndex batch = 0; batch < run.plan.round_begin(2); ++batch) {
    flight.examples = run.examples.views(run.plan.points_of(batch));
    flight.codes = input.forward(flight.examples, batch);
    digest.add_all(flight.codes.scales);
    digest.add_all(flight.codes.codes);
    const auto outcome = trainer.train(run.unit(batch, flight.examples, flight.codes));
    GLEANER_CHECK(outcome.ok());
    add(digest, *outcome);
    flight.gradient.assign(flight.codes.codes.size(), 0);
    const Bytes& gradient = outcome->result.batches.at(0).gradient;
    GLEANER_CHECK(add_gradient(flight.codes, gradient, flight.gradient).ok());
    digest.add_all(flight.gradient);
    input.backward(batch, run.plan.rates(batch).input, flight.examples, flight.codes,
                   flight.gradient);
    if (!run.plan.is_round_end(batch + 1)) continue;
    for (std::uint32_t shard = 0; shard < run.map.input_shards(); ++shard) {
      for (const SparseUpdate& part : input.commit(run.map.input_shard(shard))) add(digest, part);
    }
  }
}

void train_wide_for_test(const Kernels& kernels, TestDigest& digest) {
  TinyRun run(/*is_wide=*/true);
  WideTrainer trainer(run.config, kernels);
  for (std::uint32_t shard = 0; shard < run.map.output_shards(); ++shard) {
    LeaseGrant grant = run.grant(ShardId{shard});
    grant.base_chunks = grant.chunks = 1;
    GLEANER_CHECK(trainer.begin_load(grant).ok() &&
                  trainer.load_chunk({grant.lease, 0, wide_rows(run, ShardId{shard})}).ok() &&
                  trainer.finish_load(grant.lease).ok());
  }
  for (RoundIndex round = 0; round < 2; ++round) train_wide_round(run, trainer, round, digest);
}

}  // namespace gleaner

// Trains a small network through the numeric core alone, one round of it, and prints a digest of
// each thing that it computes. Every machine, instruction set and number of threads must print the
// same: tools/dev/aarch64/compare-digest holds an emulated aarch64 against this machine.
//
// usage: numeric_digest [THREADS]; GLEANER_SIMD chooses the instruction set.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/bytes.hpp"
#include "common/counter_random.hpp"
#include "common/model/model_config.hpp"
#include "common/model/run_plan.hpp"
#include "common/model/shard_map.hpp"
#include "common/thread_pool.hpp"
#include "common/train/input_layer.hpp"
#include "common/train/kernels.hpp"
#include "common/train/shard_trainer.hpp"
#include "schema/quantized_batch.hpp"

namespace gleaner {
namespace {

// FNV-1a: nothing but integers, so that the digest itself cannot differ.
class Digest {
 public:
  void add(const void* data, std::size_t bytes) {
    const auto* at = static_cast<const std::uint8_t*>(data);
    for (std::size_t i = 0; i < bytes; ++i) value_ = (value_ ^ at[i]) * 0x100000001b3u;
  }

  template <typename T>
  void add(const std::vector<T>& values) {
    add(values.data(), values.size() * sizeof(T));
  }

  void add(const SparseUpdate& update) {
    add(update.rows);
    add(update.scales);
    add(update.levels);
    add(update.biases);
    add(update.states);
  }

  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

// Points with a structure that can be learned: a label brings features of its own.
struct Points {
  std::vector<std::vector<std::uint32_t>> labels, features;
  std::vector<std::vector<float>> values;
  std::vector<std::uint32_t> label_counts;

  explicit Points(const ModelConfig& config) : label_counts(config.labels) {
    for (std::uint64_t point = 0; point < config.points; ++point) {
      Rng rng(config.seed, Purpose::kTest, point);
      std::map<std::uint32_t, float> entries;
      std::map<std::uint32_t, bool> true_labels;
      for (std::uint64_t n = 1 + rng.next_below(3); n > 0; --n) {
        const auto label = static_cast<std::uint32_t>(rng.next_below(config.labels));
        true_labels[label] = true;
        for (std::uint32_t f = 0; f < 5; ++f) {
          entries[(label * 7 + f * 13) % config.features] = signed_unit(rng.next());
        }
      }
      entries[static_cast<std::uint32_t>(rng.next_below(config.features))] = 0.25F;
      auto& label_list = labels.emplace_back();
      for (const auto& [label, is_true] : true_labels) {
        label_list.push_back(label);
        ++label_counts[label];
      }
      auto& feature_list = features.emplace_back();
      auto& value_list = values.emplace_back();
      for (const auto& [feature, value] : entries) {
        feature_list.push_back(feature);
        value_list.push_back(value);
      }
    }
  }

  [[nodiscard]] std::vector<ExampleView> views(const std::vector<std::uint64_t>& indices) const {
    std::vector<ExampleView> made;
    for (const std::uint64_t i : indices) made.push_back({labels[i], features[i], values[i]});
    return made;
  }
};

// One batch between its forward pass and the update of the input layer.
struct InFlight {
  std::vector<ExampleView> examples;
  QuantizedActivations codes;
  std::vector<std::int32_t> gradient;
};

class Training {
 public:
  Training(const ModelConfig& config, unsigned threads)
      : config_(config),
        points_(config),
        plan_(config),
        map_(config),
        pool_(threads),
        input_(config, pool_),
        trainer_(config, pool_) {
    for (std::uint32_t shard = 0; shard < map_.output_shards(); ++shard) {
      LeaseGrant grant;
      grant.lease = {ShardId{shard}, LeaseEpoch{1}};
      const NeuronRange range = map_.neurons(ShardId{shard});
      for (std::uint32_t n = range.begin; n < range.end; ++n) {
        grant.label_counts.push_back(points_.label_counts[map_.label_of_neuron(n)]);
      }
      require(trainer_.begin_load(grant));
      require(trainer_.finish_load(grant.lease));
      leases_.push_back(grant.lease);
    }
  }

  // Trains a whole round, its lag included, and prints what came of it.
  void run_round(RoundIndex round) {
    for (bool is_whole = false; !is_whole; schedule_.advance()) {
      const Schedule::Step step = schedule_.next().value();
      is_whole = step.kind == Schedule::Kind::kCommit;
      if (is_whole) {
        commit();
      } else if (step.kind == Schedule::Kind::kForward) {
        forward(step.index);
      } else {
        train(step.index);
        apply(step.index);
      }
    }
    fmt::print("round {}\n  quantized activations    {:016x}\n  gradients       {:016x}\n", round,
               hidden_.value(), gradients_.value());
    fmt::print("  losses, counts  {:016x}\n  output commits  {:016x}\n  input commits   {:016x}\n",
               outcomes_.value(), output_commits_.value(), input_commit_.value());
  }

  // Scores some points with every neuron.
  void evaluate() {
    std::vector<std::uint64_t> indices;
    for (std::uint64_t i = 0; i < 50; ++i) indices.push_back(i * 3);
    EvalUnit unit;
    unit.leases = leases_;
    unit.hidden =
        std::make_shared<const Bytes>(pack(input_.forward(points_.views(indices), std::nullopt)));
    const EvalResult result = require(trainer_.evaluate(unit));
    Digest scores;
    for (const ScoredNeuron& best : result.best) {
      scores.add(&best.neuron, sizeof best.neuron);
      scores.add(&best.score, sizeof best.score);
    }
    fmt::print("scores            {:016x}\n", scores.value());
  }

 private:
  template <typename T>
  static T require(Result<T> result) {
    if (!result) {
      fmt::print(stderr, "numeric_digest: {}\n", result.error().message);
      std::exit(1);
    }
    if constexpr (!std::is_void_v<T>) return std::move(*result);
  }

  void forward(BatchIndex batch) {
    InFlight& flight = in_flight_[batch];
    flight.examples = points_.views(plan_.points_of(batch));
    flight.codes = input_.forward(flight.examples, batch);
    hidden_.add(flight.codes.scales);
    hidden_.add(flight.codes.codes);
  }

  void train(BatchIndex batch) {
    InFlight& flight = in_flight_[batch];
    TrainUnit unit;
    unit.leases = leases_;
    UnitBatch& made = unit.batches.emplace_back();
    made.batch = batch;
    made.output_rate = plan_.rates(batch).output;
    made.hidden = std::make_shared<const Bytes>(pack(flight.codes));
    made.positives.offsets.push_back(0);
    for (const ExampleView& example : flight.examples) {
      std::vector<std::uint32_t> neurons;
      for (const std::uint32_t label : example.labels) {
        neurons.push_back(map_.neuron_of_label(label));
      }
      std::sort(neurons.begin(), neurons.end());
      made.positives.neurons.insert(made.positives.neurons.end(), neurons.begin(), neurons.end());
      made.positives.offsets.push_back(static_cast<std::uint32_t>(made.positives.neurons.size()));
    }
    const ShardTrainer::UnitOutcome outcome = require(trainer_.train(unit));
    const BatchResult& result = outcome.result.batches.front();
    for (const ShardOutcome& shard : result.shards) {
      outcomes_.add(&shard.gradient_digest, sizeof shard.gradient_digest);
      outcomes_.add(&shard.loss, sizeof shard.loss);
      outcomes_.add(&shard.active, sizeof shard.active);
    }
    flight.gradient.assign(flight.codes.codes.size(), 0);
    if (!result.gradient.empty()) {
      require(add_gradient(flight.codes, result.gradient, flight.gradient));
    }
    gradients_.add(flight.gradient);
    for (const ShardCommit& commit : outcome.commits) output_commits_.add(commit.update);
  }

  void commit() {
    for (std::uint32_t shard = 0; shard < map_.input_shards(); ++shard) {
      for (const SparseUpdate& part : input_.commit(map_.input_shard(shard)))
        input_commit_.add(part);
    }
  }

  void apply(BatchIndex batch) {
    const InFlight& flight = in_flight_[batch];
    input_.backward(batch, plan_.rates(batch).input, flight.examples, flight.codes,
                    flight.gradient);
    in_flight_.erase(batch);
  }

  ModelConfig config_;
  Points points_;
  RunPlan plan_;
  Schedule schedule_{plan_, 0};
  ShardMap map_;
  ThreadPool pool_;
  InputLayer input_;
  ShardTrainer trainer_;
  std::vector<LeaseRef> leases_;
  std::map<BatchIndex, InFlight> in_flight_;
  Digest hidden_, gradients_, outcomes_, output_commits_, input_commit_;
};

ModelConfig small_model() {
  ModelConfig config;
  config.points = 600;
  config.features = 400;
  config.labels = 500;
  config.hidden = 64;
  config.output_shards = 3;
  config.input_shards = 2;
  config.batch_examples = 48;
  config.round_batches = 7;
  config.staleness = 2;
  config.hash_bits = 5;
  config.tables = 11;
  config.active_cap = 150;
  config.random_negatives = 9;
  config.rehash_batches = 3;
  config.dropout = 0.1F;
  config.feature_dropout = 0.2F;
  config.rate_decay = 0.9F;
  config.warmup_batches = 4;
  return config;
}

}  // namespace
}  // namespace gleaner

int main(int argc, char** argv) {
  using namespace gleaner;
  const unsigned threads = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 1;
  if (argc > 2 || threads < 1 || threads > 64) {
    fmt::print(stderr, "usage: numeric_digest [THREADS]\n");
    return 2;
  }
  const Result<SimdLevel> level = simd_level_from_environment();
  if (!level) {
    fmt::print(stderr, "numeric_digest: {}\n", level.error().message);
    return 2;
  }
  // The rest may differ from machine to machine and is not on stdout for that reason.
  fmt::print(stderr, "{}, {} threads\n", simd_level_name(*level), threads);
  Training training(small_model(), threads);
  training.run_round(0);
  training.run_round(1);
  training.run_round(2);
  training.evaluate();
  return 0;
}

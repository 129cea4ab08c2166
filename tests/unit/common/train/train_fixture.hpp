// A small run for tests of the output shards: its configuration, quantized activations and true
// labels that follow from a seed, and a driver that loads shards into trainers and runs units on
// them.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <vector>

#include "common/counter_random.hpp"
#include "common/model/model_config.hpp"
#include "common/model/run_plan.hpp"
#include "common/model/shard_map.hpp"
#include "common/train/shard_trainer.hpp"
#include "common/work/quantized_activations.hpp"
#include "schema/messages.hpp"

namespace gleaner::test {

// 300 labels in 5 shards, 2 epochs of 2 rounds; the last batch and round of an epoch are short.
inline ModelConfig small_config() {
  ModelConfig config;
  config.points = 16 * 7 - 5;
  config.features = 50;
  config.labels = 301;
  config.seed = 77;
  config.hidden = 48;
  config.output_shards = 5;
  config.epochs = 2;
  config.batch_examples = 16;
  config.round_batches = 4;
  config.hash_bits = 4;
  config.tables = 9;
  config.active_cap = 60;
  config.random_negatives = 7;
  config.rehash_batches = 3;
  config.output_rate = 2e-2F;
  return config;
}

// Codes as a ReLU layer gives them: about half of the units off. An example may be all off.
inline QuantizedActivations make_hidden(const ModelConfig& config, BatchIndex batch,
                                        std::uint32_t examples) {
  QuantizedActivations codes;
  codes.examples = examples;
  codes.hidden = config.hidden;
  codes.codes.resize(std::size_t{examples} * config.hidden);
  Rng rng(config.seed, Purpose::kTest, 1000 + batch);
  for (std::uint32_t e = 0; e < examples; ++e) {
    const bool is_off = rng.chance(1, 40);
    codes.scales.push_back(is_off ? 0.0F : 0.002F + 0.01F * (signed_unit(rng.next()) + 1.0F));
    for (std::uint32_t i = 0; i < config.hidden; ++i) {
      const bool is_on = !is_off && rng.chance(1, 2);
      // Codes of linear units have either sign, and are rarely zero by themselves.
      codes.codes[std::size_t{e} * config.hidden + i] =
          is_on ? static_cast<std::uint8_t>(rng.next_below(255) - 127) : std::uint8_t{0};
    }
  }
  return codes;
}

// True labels of every example, over all shards.
inline Positives make_positives(const ModelConfig& config, BatchIndex batch,
                                std::uint32_t examples) {
  Positives positives;
  positives.offsets.push_back(0);
  Rng rng(config.seed, Purpose::kTest, 2000 + batch);
  for (std::uint32_t e = 0; e < examples; ++e) {
    std::vector<std::uint32_t> neurons;
    for (std::uint64_t i = rng.next_below(6); i > 0; --i) {
      neurons.push_back(static_cast<std::uint32_t>(rng.next_below(config.labels)));
    }
    std::sort(neurons.begin(), neurons.end());
    neurons.erase(std::unique(neurons.begin(), neurons.end()), neurons.end());
    positives.neurons.insert(positives.neurons.end(), neurons.begin(), neurons.end());
    positives.offsets.push_back(static_cast<std::uint32_t>(positives.neurons.size()));
  }
  return positives;
}

// The positives that lie in the shards.
inline Positives in_shards(const Positives& all, const ShardMap& map,
                           const std::vector<LeaseRef>& leases) {
  Positives positives;
  positives.offsets.push_back(0);
  for (std::size_t e = 0; e + 1 < all.offsets.size(); ++e) {
    for (std::uint32_t i = all.offsets[e]; i < all.offsets[e + 1]; ++i) {
      const ShardId shard = map.shard_of_neuron(all.neurons[i]);
      for (const LeaseRef& lease : leases) {
        if (lease.shard == shard) positives.neurons.push_back(all.neurons[i]);
      }
    }
    positives.offsets.push_back(static_cast<std::uint32_t>(positives.neurons.size()));
  }
  return positives;
}

inline TrainUnit make_unit(const ModelConfig& config, const std::vector<LeaseRef>& leases,
                           BatchIndex first, std::uint32_t batches) {
  const RunPlan plan(config);
  const ShardMap map(config);
  TrainUnit unit;
  unit.unit = UnitId{first + 1};
  unit.leases = leases;
  for (BatchIndex batch = first; batch < first + batches; ++batch) {
    const std::uint32_t examples = plan.examples_in(batch);
    UnitBatch work;
    work.batch = batch;
    work.hidden = std::make_shared<const Bytes>(pack(make_hidden(config, batch, examples)));
    work.positives = in_shards(make_positives(config, batch, examples), map, leases);
    work.output_rate = plan.rates(batch).output;
    unit.batches.push_back(std::move(work));
  }
  return unit;
}

inline LeaseRef lease_of(std::uint32_t shard, std::uint64_t epoch = 1) {
  return {ShardId{shard}, LeaseEpoch{epoch}};
}

inline std::vector<LeaseRef> all_leases(const ModelConfig& config) {
  std::vector<LeaseRef> leases;
  for (std::uint32_t shard = 0; shard < config.output_shards; ++shard) {
    leases.push_back(lease_of(shard));
  }
  return leases;
}

inline LeaseGrant initial_grant(const ModelConfig& config, const LeaseRef& lease) {
  const ShardMap map(config);
  LeaseGrant grant;
  grant.lease = lease;
  const NeuronRange neurons = map.neurons(lease.shard);
  for (std::uint32_t neuron = neurons.begin; neuron < neurons.end; ++neuron) {
    grant.label_counts.push_back(1 + neuron % 9);
  }
  return grant;
}

inline void load_initial(ShardTrainer& trainer, const ModelConfig& config,
                         const std::vector<LeaseRef>& leases) {
  for (const LeaseRef& lease : leases) {
    REQUIRE(trainer.begin_load(initial_grant(config, lease)).ok());
    REQUIRE(trainer.finish_load(lease).ok());
  }
}

inline ShardTrainer::UnitOutcome train_ok(ShardTrainer& trainer, const TrainUnit& unit) {
  auto outcome = trainer.train(unit);
  if (!outcome) FAIL(outcome.error().message);
  return std::move(*outcome);
}

// The rows of a shard that a store holds: those that commits have touched, applied as the store
// does.
struct StoredShard {
  struct Row {
    std::vector<float> values;
    float state = 0;
    std::vector<std::uint32_t> codes;
  };

  std::map<std::uint32_t, Row> rows;

  // Applies one part; `grant` gives the initial rows.
  void apply(const ModelConfig& config, const LeaseGrant& grant, const SparseUpdate& update);
  [[nodiscard]] ShardRows read() const;
  [[nodiscard]] ShardDigest digest(ShardId shard) const;
};

}  // namespace gleaner::test

// The model keys that a person has set. Everything left out follows from the data: the recipe
// proposes a whole ModelConfig, and what is set here replaces its fields.
#pragma once

#include <cstdint>
#include <optional>

#include "common/limits.hpp"
#include "common/model/model_config.hpp"

namespace gleaner {

struct ModelOverrides {
  std::optional<std::uint32_t> hidden;
  std::optional<std::uint32_t> output_shards;
  std::optional<std::uint32_t> input_shards;
  std::optional<std::uint32_t> epochs;
  std::optional<std::uint32_t> batch_examples;
  std::optional<std::uint32_t> round_batches;
  std::optional<std::uint32_t> staleness;
  std::optional<std::uint32_t> staleness_rise;
  std::optional<HiddenUnits> hidden_units;
  std::optional<Sampling> sampling;
  std::optional<std::uint32_t> hash_bits;
  std::optional<std::uint32_t> tables;
  std::optional<std::uint32_t> active_cap;
  std::optional<std::uint32_t> random_negatives;
  std::optional<std::uint32_t> rehash_batches;
  std::optional<float> output_rate;
  std::optional<float> input_rate;
  std::optional<float> rate_decay;
  std::optional<std::uint32_t> warmup_batches;
  std::optional<float> second_moment_decay;
  std::optional<float> epsilon;
  std::optional<float> dropout;
  std::optional<float> feature_dropout;
  std::optional<float> input_scale;
  std::optional<float> output_scale;
  std::optional<float> divergence_factor;
  std::optional<std::int32_t> gradient_step_log2;

  friend bool operator==(const ModelOverrides&, const ModelOverrides&) = default;
};

// What is known of a field besides its type. Choices have words instead of bounds.
template <typename T>
struct ModelField {
  const char* name;
  std::optional<T> ModelOverrides::*override;
  T ModelConfig::*field;
  T low;
  T high;
  const char* unit;
  const char* doc;
};

// Calls a visitor with the fields of whole and of real numbers.
template <typename Visit>
class ModelFieldVisit {
 public:
  explicit ModelFieldVisit(Visit& visit) : visit_(visit) {}

  void whole(const char* name, std::optional<std::uint32_t> ModelOverrides::*override,
             std::uint32_t ModelConfig::*field, std::uint32_t low, std::uint32_t high,
             const char* unit, const char* doc) {
    visit_(ModelField<std::uint32_t>{name, override, field, low, high, unit, doc});
  }

  void real(const char* name, std::optional<float> ModelOverrides::*override,
            float ModelConfig::*field, float low, float high, const char* unit, const char* doc) {
    visit_(ModelField<float>{name, override, field, low, high, unit, doc});
  }

  template <typename T>
  void other(const ModelField<T>& field) {
    visit_(field);
  }

 private:
  Visit& visit_;
};

// Sizes, and how the run is cut.
template <typename Visit>
void for_each_shape_field(ModelFieldVisit<Visit> to) {
  using O = ModelOverrides;
  using C = ModelConfig;
  to.whole("epochs", &O::epochs, &C::epochs, 1, 100'000, "epochs",
           "How often training goes through the whole training file.");
  to.whole("hidden", &O::hidden, &C::hidden, kLanes, kHiddenMax, "units",
           "Width of the hidden layer; a multiple of 16.");
  to.other(ModelField<HiddenUnits>{"hidden_units", &O::hidden_units, &C::hidden_units,
                                   HiddenUnits::kRelu, HiddenUnits::kLinear, "",
                                   "What a hidden unit makes of its sum: zero where it is negative "
                                   "(relu), or the sum itself (linear)."});
  to.whole("output_shards", &O::output_shards, &C::output_shards, 1, kOutputShardsMax, "shards",
           "Shards that the output layer is cut into; at least as many as volunteers are expected, "
           "at most the number of labels.");
  to.whole("input_shards", &O::input_shards, &C::input_shards, 1, kInputShardsMax, "shards",
           "Shards that the hidden layer is cut into; each must hold a multiple of 16 units.");
  to.whole("batch_examples", &O::batch_examples, &C::batch_examples, 1, kBatchExamplesMax,
           "examples", "Examples between two updates of the weights.");
  to.whole(
      "round_batches", &O::round_batches, &C::round_batches, 1, 1'000'000, "batches",
      "Batches between two checkpoints. An epoch is cut into rounds of so many, or a round has as "
      "many whole epochs as fit; then epochs must be a multiple of these.");
  to.whole("staleness", &O::staleness, &C::staleness, 0, kStalenessMax, "batches",
           "Lag between a batch's forward pass and the last update it sees. 0 trains strictly in "
           "order; more hides the network's latency and needs a staleness_rise.");
  to.whole(
      "staleness_rise", &O::staleness_rise, &C::staleness_rise, 0, 1'000'000, "batches",
      "The lag begins at 1 and grows by one every so many batches until it is staleness, since "
      "the first updates all point one way and overshoot when they come late. 0: staleness "
      "from the start.");
}

// Which neurons an example trains.
template <typename Visit>
void for_each_sampling_field(ModelFieldVisit<Visit> to) {
  using O = ModelOverrides;
  using C = ModelConfig;
  to.other(ModelField<Sampling>{"sampling", &O::sampling, &C::sampling, Sampling::kLsh,
                                Sampling::kAll, "",
                                "How the active output neurons of an example are chosen: by hash "
                                "tables, at random, or all of them."});
  to.whole("hash_bits", &O::hash_bits, &C::hash_bits, 1, kHashBitsMax, "bits",
           "Bits of a hash code: each table has 2 to the power of so many buckets.");
  to.whole("tables", &O::tables, &C::tables, 1, kTablesMax, "tables", "Hash tables.");
  to.whole("active_cap", &O::active_cap, &C::active_cap, 1, kLabelsMax, "neurons",
           "Most active neurons an example gets besides its true labels, over the whole layer.");
  to.whole("random_negatives", &O::random_negatives, &C::random_negatives, 0, kLabelsMax, "neurons",
           "Neurons chosen at random for an example besides those from the tables.");
  to.whole("rehash_batches", &O::rehash_batches, &C::rehash_batches, 1, 1'000'000, "batches",
           "Neurons that changed are hashed anew every so many batches.");
}

// How they learn.
template <typename Visit>
void for_each_learning_field(ModelFieldVisit<Visit> to) {
  using O = ModelOverrides;
  using C = ModelConfig;
  to.real("output_rate", &O::output_rate, &C::output_rate, 0.0F, kRateMax, "",
          "Learning rate of the output layer.");
  to.real("input_rate", &O::input_rate, &C::input_rate, 0.0F, kRateMax, "",
          "Learning rate of the input layer.");
  to.real("rate_decay", &O::rate_decay, &C::rate_decay, 1e-6F, 1.0F, "",
          "Both rates are multiplied by it after every epoch.");
  to.whole("warmup_batches", &O::warmup_batches, &C::warmup_batches, 0, 1'000'000'000, "batches",
           "The rates rise linearly from zero over so many batches.");
  to.real("second_moment_decay", &O::second_moment_decay, &C::second_moment_decay, 0.0F, 0.9999999F,
          "", "How much of its gradient statistics a row keeps from one update to the next.");
  to.real("epsilon", &O::epsilon, &C::epsilon, 1e-30F, 1.0F, "",
          "Added to the denominator of every update.");
  to.real("dropout", &O::dropout, &C::dropout, 0.0F, 0.95F, "",
          "Share of the hidden units zeroed for an example in training.");
  to.real("feature_dropout", &O::feature_dropout, &C::feature_dropout, 0.0F, 0.95F, "",
          "Share of an example's features left out in training; the others are scaled up.");
  to.real("input_scale", &O::input_scale, &C::input_scale, 0.0F, 100.0F, "",
          "Standard deviation of the input layer's initial weights.");
  to.real("output_scale", &O::output_scale, &C::output_scale, 0.0F, 100.0F, "",
          "Initial output weights are uniform within this, over the square root of hidden.");
  to.real("divergence_factor", &O::divergence_factor, &C::divergence_factor, 0.0F, 1e6F, "",
          "A round whose loss is so many times the lowest of a round before has diverged: it is "
          "trained again at half the rates. 0: never.");
  to.other(ModelField<std::int32_t>{"gradient_step_log2", &O::gradient_step_log2,
                                    &C::gradient_step_log2, -13, 0, "",
                                    "Gradients of the hidden layer travel as multiples of 2 to the "
                                    "power of this."});
}

// Calls visit(ModelField<T>) for every field of ModelConfig that can be overridden, in the order in
// which the documentation shows them. The one list from which keys, overriding and recording
// follow.
template <typename Visit>
void for_each_model_field(Visit visit) {
  for_each_shape_field(ModelFieldVisit(visit));
  for_each_sampling_field(ModelFieldVisit(visit));
  for_each_learning_field(ModelFieldVisit(visit));
}

// `recipe` with the overrides in place. Does not validate.
ModelConfig apply_overrides(ModelConfig recipe, const ModelOverrides& overrides);
// Overrides that set every field to that of `model`.
ModelOverrides all_overrides(const ModelConfig& model);

}  // namespace gleaner

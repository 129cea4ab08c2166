// The table of ModelConfig's fields. Keys, flags, help, text, wire form, identity and ranges follow
// from it. A new number needs a line here; a new enumeration also needs its words in
// model_fields.cpp. Pure; any thread.
#pragma once

#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/limits.hpp"
#include "common/model/model_config.hpp"
#include "common/result.hpp"

namespace gleaner {

// The range includes `low` and `high`.
template <typename T>
struct ModelField {
  const char* name;
  T ModelConfig::*member;
  T low;
  T high;
  const char* unit;
  const char* doc;  // empty if the value comes from the data and is no key
};

namespace detail {

// Makes a ModelField of its arguments and passes it to the visitor.
template <typename Visit>
class ModelFieldVisit {
 public:
  explicit ModelFieldVisit(const Visit& visit) : visit_(visit) {}

  template <typename T>
  void operator()(const char* name, T ModelConfig::*member, std::type_identity_t<T> low,
                  std::type_identity_t<T> high, const char* unit, const char* doc) const {
    visit_(ModelField<T>{name, member, low, high, unit, doc});
  }

 private:
  const Visit& visit_;
};

template <typename Visit>
void visit_data_fields(const ModelFieldVisit<Visit>& field) {
  using C = ModelConfig;
  constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
  field("data_fingerprint", &C::data_fingerprint, 0, kAny, "", "");
  field("points", &C::points, 1, std::uint64_t{1} << 40, "", "");
  field("features", &C::features, 1, kFeaturesMax, "", "");
  field("labels", &C::labels, 1, kLabelsMax, "", "");
  field("wide_rows", &C::wide_rows, 0, kWideRowsMax, "", "");
  field("seed", &C::seed, 0, kAny, "", "");
}

// Sizes, and the run's division into batches and rounds.
template <typename Visit>
void visit_shape_fields(const ModelFieldVisit<Visit>& field) {
  using C = ModelConfig;
  field("hidden", &C::hidden, 0, kHiddenMax, "units",
        "Width of the hidden layer; a multiple of 16. 0: no hidden layer; each label has a sparse "
        "row of weights directly over the features. Settings of hidden units, hash tables and "
        "gradients then have no effect.");
  field("hidden_units", &C::hidden_units, HiddenUnits::kRelu, HiddenUnits::kLinear, "",
        "Activation of a hidden unit: its sum, with a negative sum set to zero (relu) or not "
        "(linear).");
  field("output_shards", &C::output_shards, 1, kOutputShardsMax, "shards",
        "Shards that the output layer is cut into; at least as many as volunteers are expected, "
        "at most the number of labels.");
  field("input_shards", &C::input_shards, 1, kInputShardsMax, "shards",
        "Shards that the hidden layer is cut into; each must hold a multiple of 16 units.");
  field("epochs", &C::epochs, 1, 100'000, "epochs", "Passes over the whole training file.");
  field("batch_examples", &C::batch_examples, 1, kBatchExamplesMax, "examples",
        "Examples between two updates of the weights.");
  field("round_batches", &C::round_batches, 1, 1'000'000, "batches",
        "Batches between two checkpoints. An epoch is cut into rounds of this length, or a round "
        "has as "
        "many whole epochs as fit; then epochs must be a multiple of these.");
  field("staleness", &C::staleness, 0, kStalenessMax, "batches",
        "Lag between a batch's forward pass and the last update it sees. 0 trains strictly in "
        "order; more hides the network's latency and needs a staleness_rise. Without a hidden "
        "layer: rounds (at least 1) that a shard may be ahead of the slowest shard.");
  field("staleness_rise", &C::staleness_rise, 0, 1'000'000, "batches",
        "The lag begins at 1 and grows by one every N batches until it is staleness, since "
        "the first updates all point one way and overshoot when they come late. 0: staleness "
        "from the start.");
}

// The choice of the neurons that an example trains.
template <typename Visit>
void visit_sampling_fields(const ModelFieldVisit<Visit>& field) {
  using C = ModelConfig;
  field("sampling", &C::sampling, Sampling::kLsh, Sampling::kAll, "",
        "How the active output neurons of an example are chosen: by hash "
        "tables, at random, or all of them.");
  field("hash_bits", &C::hash_bits, 1, kHashBitsMax, "bits",
        "Bits of a hash code: a table of N bits has 2 to the power of N buckets.");
  field("tables", &C::tables, 1, kTablesMax, "tables", "Hash tables.");
  field("active_cap", &C::active_cap, 1, kLabelsMax, "neurons",
        "Most active neurons an example gets besides its true labels, over the whole layer.");
  field("random_negatives", &C::random_negatives, 0, kLabelsMax, "neurons",
        "Neurons chosen at random for an example besides those from the tables.");
  field("rehash_batches", &C::rehash_batches, 1, 1'000'000, "batches",
        "Neurons that changed are hashed again every N batches. Without a hidden layer: the "
        "features' lists are rebuilt every N batches.");
  field("feature_list", &C::feature_list, 0, kLabelsMax, "", "");
  field("wide_features", &C::wide_features, 1, 1'000'000, "features",
        "Without a hidden layer: features that a label keeps. It keeps a quarter of this number "
        "more for each of its examples.");
  field("wide_scale", &C::wide_scale, 0.0F, 1000.0F, "",
        "Without a hidden layer: length of a label's start row, the scaled sum of its examples.");
  field("wide_list_weight", &C::wide_list_weight, 0.0F, 1.0F, "",
        "Without a hidden layer: a feature's list has the labels whose weight for it exceeds this "
        "fraction of wide_scale, or of 16 if that is less. Active neurons come from these lists.");
  field("wide_score_min", &C::wide_score_min, -100.0F, 0.0F, "",
        "Without a hidden layer: an example trains the labels of its features' lists whose score, "
        "summed over these lists, exceeds this.");
  field("wide_text_weight", &C::wide_text_weight, 0.0F, 1000.0F, "examples",
        "Without a hidden layer: weight of a label's texts (data.label_texts) in its start row, "
        "beside its examples, which weigh 1 each.");
}

// Learning rates, optimizer and regularisation.
template <typename Visit>
void visit_learning_fields(const ModelFieldVisit<Visit>& field) {
  using C = ModelConfig;
  field("output_rate", &C::output_rate, 0.0F, kRateMax, "", "Learning rate of the output layer.");
  field("input_rate", &C::input_rate, 0.0F, kRateMax, "", "Learning rate of the input layer.");
  field("rate_decay", &C::rate_decay, 1e-6F, 1.0F, "", "Factor of both rates after every epoch.");
  field("warmup_batches", &C::warmup_batches, 0, 1'000'000'000, "batches",
        "The rates rise linearly from zero over N batches.");
  field("second_moment_decay", &C::second_moment_decay, 0.0F, 0.9999999F, "",
        "Fraction of its gradient statistics that a row keeps from one update to the next.");
  field("epsilon", &C::epsilon, 1e-30F, 1.0F, "", "Added to the denominator of every update.");
  field("dropout", &C::dropout, 0.0F, 0.95F, "",
        "Fraction of the hidden units zeroed for an example in training.");
  field("feature_dropout", &C::feature_dropout, 0.0F, 0.95F, "",
        "Fraction of an example's features left out in training; the others are scaled up.");
  field("input_scale", &C::input_scale, 0.0F, 100.0F, "",
        "Standard deviation of the input layer's initial weights.");
  field("output_scale", &C::output_scale, 0.0F, 100.0F, "",
        "Initial output weights are uniform within this, over the square root of hidden.");
  field("divergence_factor", &C::divergence_factor, 0.0F, 1e6F, "",
        "A round whose loss is N times the lowest of an earlier round has diverged: it is "
        "trained again at half the rates. 0: never.");
  field("gradient_step_log2", &C::gradient_step_log2, -13, 0, "",
        "Gradients of the hidden layer travel as multiples of 2 to the "
        "power of this.");
  field("activation_bits", &C::activation_bits, 2, 8, "bits",
        "Bits of a quantized activation, including its sign.");
}

}  // namespace detail

// Calls visit(ModelField<T>) for every field, in the order of the structure and of digests.
template <typename Visit>
void for_each_model_field(const Visit& visit) {
  const detail::ModelFieldVisit<Visit> field(visit);
  detail::visit_data_fields(field);
  detail::visit_shape_fields(field);
  detail::visit_sampling_fields(field);
  detail::visit_learning_fields(field);
  constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
  field("initial_fingerprint", &ModelConfig::initial_fingerprint, 0, kAny, "", "");
  field("label_texts_fingerprint", &ModelConfig::label_texts_fingerprint, 0, kAny, "", "");
}

// Calls visit(ModelField<T>) for the fields that a user may set, in the same order.
template <typename Visit>
void for_each_model_key(const Visit& visit) {
  for_each_model_field([&](const auto& field) {
    if (*field.doc != '\0') visit(field);
  });
}

// The words of an enumerated field, by value.
std::vector<std::string> model_words(HiddenUnits);
std::vector<std::string> model_words(Sampling);

// Name and text of every field, in the order of the structure. Some fields, such as
// `initial_fingerprint`, are included only if they are used. Reading a number's text
// gives the same bits.
std::vector<std::pair<std::string, std::string>> model_fields(const ModelConfig& config);

// The inverse, validated; errors are kCorrupt. A missing field was added after the text was
// written, and has its default. An unknown name is kVersion: a newer program wrote it, and it may
// matter to the arithmetic.
Result<ModelConfig> model_from_fields(const std::map<std::string, std::string>& fields);

// A used field that has different values in two configurations.
struct FieldDifference {
  std::string name;
  std::string left;
  std::string right;
};

std::vector<FieldDifference> model_differences(const ModelConfig& left, const ModelConfig& right);

}  // namespace gleaner

#include "tools/plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "common/limits.hpp"
#include "common/train/input_trainer.hpp"
#include "common/train/shard_trainer.hpp"

namespace gleaner {
namespace {

// Examples of a batch share the neurons that tables bring them: they reach as many rows as if each
// chose this fraction of them independently. PLAN.md says where the constants come from.
constexpr double kOwnChoice = 0.5;
constexpr double kGradientBits = 1.0;  // of an example's largest entry, if its step were 1
constexpr double kUnitBytes = 120;     // of a unit besides its examples
constexpr double kResultBytes = 60;    // of a result, and per shard of a batch:
constexpr double kOutcomeBytes = 32;
constexpr double kLevelBytes = 0.4;       // of a committed weight, as zstd leaves them
constexpr double kWideLevelBytes = 0.12;  // most weights of a wide row stay as they are
constexpr double kOutputRowBytes = 14;    // of a committed row besides: id, scale, bias, state
constexpr double kRecordBytes = 28;     // of a row or an entry in the store: key, checksum, filter
constexpr double kStagedRowBytes = 15;  // of a staged row besides its weights, of four bits
constexpr double kFeatureBytes = 7;     // of a feature of an example that is sent
constexpr double kFeatureIdBytes = 3;   // of a weight's feature in a stored wide row
constexpr double kWire = 1 + 66 / 1448.;            // TCP's headers, over Ethernet
constexpr double kAcknowledged = 66 / (2 * 1448.);  // of the other way's bytes
constexpr double kSilence = 10;                     // seconds, until a volunteer counts as dead
constexpr double kProgramBytes = 40e6;              // a program before it holds anything
constexpr double kStoreCacheBytes = 250e6;          // the store's caches and logs

double reached(double choices, double rows) {
  return rows > 0 ? rows * -std::expm1(-choices / rows) : 0;
}

// Neurons that an example trains without a hidden layer, besides its true labels: assumed, since
// the lists decide (16 to 196 on four data sets; tests/bench/RESULTS.md, wide-threshold).
constexpr double kListedNeurons = 50;

// The sizes of a run, each made of those above it, and what follows from them.
struct Shape {
  const PlanInput& input;
  const ModelConfig& model = input.model;
  bool wide = is_wide(model);
  double labels = model.labels;
  double features = wide ? 0 : model.features + 1.0;  // the bias is a row as well
  double hidden = model.hidden;
  double width = wide ? kWideWeights : hidden;  // weights of a stored row
  bool has_tables = model.sampling == Sampling::kLsh;
  double tables = has_tables ? model.tables : 0;

  // Rounds are about equally long.
  double points = static_cast<double>(model.points);
  double batch = model.batch_examples;
  double epoch_batches = std::ceil(points / batch);
  double span_batches = epochs_per_round(model) * epoch_batches;
  double batches = span_batches / std::ceil(span_batches / model.round_batches);  // of a round
  double examples = batch * batches;

  // Neurons of an example; of them, drawn at random from all.
  double chosen = model.sampling == Sampling::kAll ? labels
                  : wide                           ? kListedNeurons
                                                   : model.active_cap;
  double random = has_tables && !wide ? model.random_negatives : 0;
  double active = std::min(labels, chosen + random + input.facts.labels_per_point);
  double drawn = std::min(model.sampling == Sampling::kRandom ? chosen : random, active);

  // Rows touched in a round, and at the end of the run; wide ones are there from the start.
  double choices = kOwnChoice * (active - drawn) + drawn;
  double words = kOwnChoice * input.facts.features_per_point;
  double run_examples = points * model.epochs;
  double stored_rows = wide ? static_cast<double>(model.wide_rows) * model.output_shards
                            : reached(choices * run_examples, labels);
  double output_rows = reached(choices * examples, labels) * (wide ? stored_rows / labels : 1);
  double stored_features = reached(words * run_examples, features);
  double input_rows = reached(words * examples, features);

  // The most that one volunteer has: shards, their fraction of all, and so of the input layer.
  double holders = std::min<double>(input.volunteers.count, model.output_shards);
  double held = std::ceil(model.output_shards / holders);
  double share = held / model.output_shards;
  double input_holders = std::min<double>(holders, model.input_shards);
  double inputs = input.lends_input && !wide ? std::ceil(model.input_shards / input_holders) : 0;
  double input_share = inputs / model.input_shards;

  // Seconds per byte of a volunteer's link, and of the master's.
  double byte = input.volunteers.mbit > 0 ? 8e-6 / input.volunteers.mbit : 0;
  double master_byte = input.master.mbit > 0 ? 8e-6 / input.master.mbit : 0;

  [[nodiscard]] TrafficPlan traffic() const {
    const double rectified = model.hidden_units == HiddenUnits::kLinear ? 1 : input.rectified_on;
    const double on = rectified * (1 - model.dropout);
    const double code = model.activation_bits / 8.0;
    const double codes = wide ? 0 : 4 + hidden * std::min(code, 1.0 / 8 + on * code);
    const double own_labels = std::max(input.facts.labels_per_point * share, 1e-3);
    const double label_bytes = std::ceil(std::log2(std::max(labels / own_labels, 2.0)) / 7);
    const double gradient = 1 + on * hidden * (kGradientBits - model.gradient_step_log2) / 8;
    TrafficPlan t;
    t.unit_down = kWire * (codes + 1 + own_labels * label_bytes + kUnitBytes / batch +
                           input_share * (hidden / 8 + gradient));
    t.unit_up = kWire * (gradient + (kResultBytes + kOutcomeBytes * held) / batch +
                         input_share * hidden * (1.0 / 8 + 4 * rectified));
    const double level_bytes = wide ? kWideLevelBytes : kLevelBytes;
    t.commit_up = kWire *
                  (output_rows * share * (level_bytes * width + kOutputRowBytes) +
                   input_rows * input_share * kLevelBytes * hidden) /
                  examples;
    const double up = t.unit_up + t.commit_up;
    t.down = t.unit_down + kAcknowledged * up;
    t.up = up + kAcknowledged * t.unit_down;
    t.download = kWire * (stored_rows * share * (4 * (width + 3) + tables * model.hash_bits / 8) +
                          4 * stored_features * hidden * input_share);
    // Examples come once to those who need their features.
    if (wide || inputs > 0) {
      t.download += kWire * kFeatureBytes * input.facts.features_per_point * points;
    }
    return t;
  }

  void add_times(const StepCosts& costs, Plan& plan) const {
    const TrafficPlan& t = plan.traffic;
    // A volunteer's threads share its shards evenly.
    const double lookups = wide ? 0 : input.facts.features_per_point * costs.feature;
    const double volunteer =
        batch * ((share * active * costs.visit + input_share * lookups) / input.volunteers.cores +
                 hidden * costs.around) +
        2 * costs.message;
    // The master's network thread, and beside it the input layer and the sum of gradients.
    const double network = 2 * costs.message * holders;
    const double worker = batch * ((inputs > 0 ? 0 : lookups) + holders * hidden * costs.add_unit);
    const double master = std::max(network, (worker + network) / input.master.cores);
    const std::pair<double, const char*> stations[] = {
        {volunteer, "volunteers' processors"},
        {master, "master's processor"},
        {batch * std::max(t.down, t.up) * byte, "volunteers' links"},
        {batch * std::max(t.down, t.up) * holders * master_byte, "master's link"}};
    plan.trip_seconds = input.round_trip + volunteer + master +
                        batch * (t.down + t.up) * (byte + holders * master_byte);
    auto slowest = *std::ranges::max_element(stations, {}, &std::pair<double, const char*>::first);
    // A lag bounds how many batches are under way; without a hidden layer none waits for another.
    const double lag_seconds = plan.trip_seconds / (model.staleness + 1.0);
    const bool has_lag = !wide && model.staleness + 1.0 < batches;
    if (has_lag && lag_seconds > slowest.first) slowest = {lag_seconds, "lag"};
    plan.limit = slowest.second;
    // A round fills the pipeline, then keeps its pace.
    plan.round_seconds = plan.trip_seconds + std::max(0.0, batches - 1) * slowest.first;
    plan.epoch_seconds = plan.round_seconds * epoch_batches / batches;
    plan.examples_per_second = examples / plan.round_seconds;
    // A dead volunteer is found, and its shards are sent to the others and trained again there,
    // half a round on average; all wait for it.
    const double others = std::max(1.0, holders - 1);
    const double sent = plan.traffic.download * (byte > 0 ? byte : master_byte) / others;
    const double again = examples / 2 * share * active * costs.visit / others;
    plan.death_seconds = kSilence + sent + again / input.volunteers.cores;
    const double rate = input.volunteers.count * input.volunteers.deaths / 3600;
    plan.deaths_fraction = rate * plan.death_seconds / (1 + rate * plan.death_seconds);
    plan.run_seconds = plan.epoch_seconds * model.epochs / (1 - plan.deaths_fraction);
  }

  void add_memory(Plan& plan) const {
    const double row = 4 * (width + 1) + kRecordBytes;  // weights and optimizer state
    const double entry = wide         ? (width + 1) * kFeatureIdBytes + kRecordBytes
                         : tables > 0 ? tables * std::ceil(model.hash_bits / 8.0) + 1 + kRecordBytes
                                      : 0;
    plan.store_content = stored_rows * (row + 4 + entry) + stored_features * row + 4 * labels;
    plan.store_most =
        3 * plan.store_content + 2 * (output_rows + input_rows) * (width / 2 + kStagedRowBytes);
    const double data =
        points * (8 * input.facts.features_per_point + 4 * input.facts.labels_per_point + 16);
    const double input_layer = inputs > 0 ? 0 : 4 * (features * (hidden + 2) + input_rows * hidden);
    // Two rounds of activations are kept for replays; parts of commits have come, a byte a weight.
    const double log = 2 * examples * plan.traffic.unit_down;
    const auto parts_most = input.volunteers.count * kCommitPartsInFlight * 2 * kRowsPerChunkBytes;
    const double parts = std::min(double(parts_most), output_rows * (width + 18));
    plan.master_memory = kProgramBytes + std::min(kStoreCacheBytes, plan.store_content) + data +
                         input_layer + log + parts + 16 * labels;
    // Its shards, and a round's commits until they have left.
    const WideWeights& weights = input.wide_weights;
    const auto shards = wide ? held * double(WideTrainer::shard_bytes(model, weights)) +
                                   double(WideTrainer::holder_bytes(model, weights))
                             : held * double(ShardTrainer::shard_bytes(model)) +
                                   inputs * double(InputTrainer::shard_bytes(model));
    plan.volunteer_memory = kProgramBytes + shards + output_rows * share * (1.5 * width + 28);
  }
};

}  // namespace

Result<Plan> make_plan(const PlanInput& input, const StepCosts& costs) {
  if (auto valid = validate(input.model); !valid) return valid.error();
  const Shape shape{input};
  Plan plan{.active = shape.active, .holders = shape.holders, .traffic = shape.traffic()};
  shape.add_times(costs, plan);
  shape.add_memory(plan);
  const std::tuple<const char*, double, double, const char*> rooms[] = {
      {"a volunteer", plan.volunteer_memory, input.volunteers.memory,
       "more volunteers, or more --shards where they are fewer than volunteers"},
      {"the master", plan.master_memory, input.master.memory, "fewer --hidden units"},
      {"the store", plan.store_most, input.master.disk, "fewer --hidden units"}};
  for (const auto& [who, needs, has, remedy] : rooms) {
    if (has == 0 || needs <= has) continue;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} needs {:.2f} GiB and has {:.2f} GiB: {}", who, needs / kGib,
                             has / kGib, remedy)};
  }
  return plan;
}

}  // namespace gleaner

#include "tools/plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
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
constexpr double kProgramBytes = 40e6;              // a program before it holds anything
constexpr double kStoreCacheBytes = 250e6;          // the store's caches and logs

// The sizes that everything else is made of.
struct Shape {
  double labels, features, hidden, tables;
  double width;    // weights of a stored row
  double batch;    // examples
  double batches;  // per round
  double epoch_batches;
  double active, drawn;                 // neurons per example; of them, at random from all
  double output_rows, input_rows;       // touched in a round
  double stored_rows, stored_features;  // at the end of the run
  double shards, holders, held, share;  // held, share: the most that one volunteer has
  double inputs, input_share;           // input shards and share of one volunteer that has any

  [[nodiscard]] double examples() const { return batch * batches; }
};

double reached(double choices, double rows) {
  return rows * -std::expm1(-choices / rows);
}

Shape shape_of(const PlanInput& input) {
  const ModelConfig& m = input.model;
  Shape s{};
  s.labels = m.labels;
  s.features = m.features + 1.0;  // the bias is a row as well
  s.hidden = m.hidden;
  s.tables = m.sampling == Sampling::kLsh ? m.tables : 0.0;
  s.batch = m.batch_examples;
  s.epoch_batches = std::ceil(static_cast<double>(m.points) / s.batch);
  // Rounds are about equally long.
  const double span = epochs_per_round(m) * s.epoch_batches;
  s.batches = span / std::ceil(span / m.round_batches);
  const bool has_tables = m.sampling == Sampling::kLsh;
  const double chosen = m.sampling == Sampling::kAll ? s.labels : m.active_cap;
  s.drawn = has_tables ? m.random_negatives : m.sampling == Sampling::kRandom ? chosen : 0.0;
  s.active =
      std::min(s.labels, chosen + (has_tables ? s.drawn : 0.0) + input.facts.labels_per_point);
  s.drawn = std::min(s.drawn, s.active);
  const double choices = kOwnChoice * (s.active - s.drawn) + s.drawn;
  const double words = kOwnChoice * input.facts.features_per_point;
  const double run = static_cast<double>(m.points) * m.epochs;
  s.output_rows = reached(choices * s.examples(), s.labels);
  s.input_rows = reached(words * s.examples(), s.features);
  s.stored_rows = reached(choices * run, s.labels);
  s.stored_features = reached(words * run, s.features);
  s.width = is_wide(m) ? kWideWeights : s.hidden;
  if (is_wide(m)) {
    // Every row is there from the start.
    s.stored_rows = static_cast<double>(m.wide_rows) * m.output_shards;
    s.output_rows *= s.stored_rows / s.labels;
    s.input_rows = s.stored_features = s.features = 0;
  }
  s.shards = m.output_shards;
  s.holders = std::min<double>(input.volunteers.count, s.shards);
  const bool lends = input.lends_input && !is_wide(m);
  s.inputs = lends ? std::ceil(m.input_shards / std::min<double>(s.holders, m.input_shards)) : 0;
  s.input_share = s.inputs / m.input_shards;
  s.held = std::ceil(s.shards / s.holders);
  s.share = s.held / s.shards;
  return s;
}

TrafficPlan traffic_of(const PlanInput& input, const Shape& s) {
  const double rectified =
      input.model.hidden_units == HiddenUnits::kLinear ? 1 : input.rectified_on;
  const double on = rectified * (1 - input.model.dropout);
  const double code = input.model.activation_bits / 8.0;
  const double codes =
      is_wide(input.model) ? 0 : 4 + s.hidden * std::min(code, 1.0 / 8 + on * code);
  const double labels = std::max(input.facts.labels_per_point * s.share, 1e-3);
  const double label_bytes = std::ceil(std::log2(std::max(s.labels / labels, 2.0)) / 7);
  const double entry_bytes = (kGradientBits - input.model.gradient_step_log2) / 8;
  const double gradient = 1 + on * s.hidden * entry_bytes;
  TrafficPlan t;
  t.unit_down = kWire * (codes + 1 + labels * label_bytes + kUnitBytes / s.batch +
                         s.input_share * (s.hidden / 8 + gradient));
  t.unit_up = kWire * (gradient + (kResultBytes + kOutcomeBytes * s.held) / s.batch +
                       s.input_share * s.hidden * (1.0 / 8 + 4 * rectified));
  t.commit_up =
      kWire *
      (s.output_rows * s.share *
           ((is_wide(input.model) ? kWideLevelBytes : kLevelBytes) * s.width + kOutputRowBytes) +
       s.input_rows * s.input_share * kLevelBytes * s.hidden) /
      s.examples();
  const double up = t.unit_up + t.commit_up;
  t.down = t.unit_down + kAcknowledged * up;
  t.up = up + kAcknowledged * t.unit_down;
  t.download = kWire * (s.stored_rows * s.share *
                            (4 * (s.width + 3) + s.tables * input.model.hash_bits / 8) +
                        4 * s.stored_features * s.hidden * s.input_share);
  // Examples come once to those who need their features.
  if (is_wide(input.model) || s.inputs > 0) {
    t.download +=
        kWire * kFeatureBytes * input.facts.features_per_point * double(input.model.points);
  }
  return t;
}

void add_pace(const PlanInput& input, const StepCosts& costs, const Shape& s, Plan& plan) {
  const TrafficPlan& t = plan.traffic;
  const double byte = input.volunteers.mbit > 0 ? 8e-6 / input.volunteers.mbit : 0;
  const double master_byte = input.master.mbit > 0 ? 8e-6 / input.master.mbit : 0;
  // A volunteer's threads share its shards evenly.
  const double features = s.features > 0 ? input.facts.features_per_point * costs.feature : 0;
  const double volunteer =
      s.batch *
          ((s.share * s.active * costs.visit + s.input_share * features) / input.volunteers.cores +
           s.hidden * costs.around) +
      2 * costs.message;
  // The master's network thread, and beside it the input layer and the sum of gradients.
  const double network = 2 * costs.message * s.holders;
  const double worker =
      s.batch * ((s.inputs > 0 ? 0 : features) + s.holders * s.hidden * costs.add_unit);
  const double master = std::max(network, (worker + network) / input.master.cores);
  const std::pair<double, const char*> stations[] = {
      {volunteer, "volunteers' processors"},
      {master, "master's processor"},
      {s.batch * std::max(t.down, t.up) * byte, "volunteers' links"},
      {s.batch * std::max(t.down, t.up) * s.holders * master_byte, "master's link"}};
  plan.trip_seconds = input.round_trip + volunteer + master +
                      s.batch * (t.down + t.up) * (byte + s.holders * master_byte);
  auto slowest = *std::ranges::max_element(stations, {}, &std::pair<double, const char*>::first);
  // A lag bounds how many batches are under way; without a hidden layer none waits for another.
  const double lag_seconds = plan.trip_seconds / (input.model.staleness + 1.0);
  const bool has_lag = !is_wide(input.model) && input.model.staleness + 1.0 < s.batches;
  if (has_lag && lag_seconds > slowest.first) slowest = {lag_seconds, "lag"};
  plan.limit = slowest.second;
  // A round fills the pipeline, then keeps its pace.
  plan.round_seconds = plan.trip_seconds + std::max(0.0, s.batches - 1) * slowest.first;
  plan.epoch_seconds = plan.round_seconds * s.epoch_batches / s.batches;
  plan.examples_per_second = plan.round_seconds > 0 ? s.examples() / plan.round_seconds
                                                    : std::numeric_limits<double>::infinity();
}

void add_memory(const PlanInput& input, const Shape& s, Plan& plan) {
  const bool wide = is_wide(input.model);
  const double row = 4 * (s.width + 1) + kRecordBytes;  // weights and optimizer state
  const double code_bytes = std::ceil(input.model.hash_bits / 8.0);
  const double entry = wide           ? (s.width + 1) * kFeatureIdBytes + kRecordBytes
                       : s.tables > 0 ? s.tables * code_bytes + 1 + kRecordBytes
                                      : 0;
  plan.store_content = s.stored_rows * (row + 4 + entry) + s.stored_features * row + 4 * s.labels;
  plan.store_most =
      3 * plan.store_content + 2 * (s.output_rows + s.input_rows) * (s.width / 2 + kStagedRowBytes);
  const double data = static_cast<double>(input.model.points) *
                      (8 * input.facts.features_per_point + 4 * input.facts.labels_per_point + 16);
  const double input_layer =
      s.inputs > 0 ? 0 : 4 * s.features * (s.hidden + 2) + 4 * s.input_rows * s.hidden;
  // Two rounds of activations are kept for replays; parts of commits have come, a byte a weight.
  const double log = 2 * s.examples() * plan.traffic.unit_down;
  const double parts = std::min(
      static_cast<double>(input.volunteers.count * kCommitPartsInFlight * 2 * kRowsPerChunkBytes),
      s.output_rows * (s.width + 18));
  plan.master_memory = kProgramBytes + std::min(kStoreCacheBytes, plan.store_content) + data +
                       input_layer + log + parts + 16 * s.labels;
  // Its shards, and a round's commits until they have left.
  const auto shard =
      static_cast<double>(wide ? WideTrainer::shard_bytes(input.model, input.wide_weights)
                               : ShardTrainer::shard_bytes(input.model));
  plan.volunteer_memory =
      kProgramBytes + s.held * shard + s.output_rows * s.share * (1.5 * s.width + 28);
  if (wide) {
    plan.volunteer_memory += double(WideTrainer::holder_bytes(input.model, input.wide_weights));
  }
  if (s.inputs > 0)
    plan.volunteer_memory += s.inputs * double(InputTrainer::shard_bytes(input.model));
}

// A dead volunteer is found, and its shards are sent to the others and trained again there, half a
// round on average; all wait for it.
void add_deaths(const PlanInput& input, const StepCosts& costs, const Shape& s, Plan& plan) {
  const double others = std::max(1.0, s.holders - 1);
  const double mbit = input.volunteers.mbit > 0 ? input.volunteers.mbit : input.master.mbit;
  const double sent = mbit > 0 ? plan.traffic.download * 8e-6 / mbit / others : 0;
  const double again = s.examples() / 2 * s.share * s.active * costs.visit / others;
  plan.death_seconds = input.silence + sent + again / input.volunteers.cores;
  const double rate = input.volunteers.count * input.volunteers.deaths / 3600;
  plan.deaths_fraction = rate * plan.death_seconds / (1 + rate * plan.death_seconds);
}

}  // namespace

Result<Plan> make_plan(const PlanInput& input, const StepCosts& costs) {
  if (auto valid = validate(input.model); !valid) return valid.error();
  const Shape s = shape_of(input);
  Plan plan;
  plan.active = s.active;
  plan.holders = s.holders;
  plan.traffic = traffic_of(input, s);
  add_pace(input, costs, s, plan);
  add_memory(input, s, plan);
  add_deaths(input, costs, s, plan);
  plan.run_seconds = plan.epoch_seconds * input.model.epochs / (1 - plan.deaths_fraction);
  const std::tuple<const char*, double, double, const char*> rooms[] = {
      {"a volunteer", plan.volunteer_memory, input.volunteers.memory,
       "more volunteers, or more --shards where they are fewer than volunteers"},
      {"the master", plan.master_memory, input.master.memory, "fewer --hidden units"},
      {"the store", plan.store_most, input.master.disk, "fewer --hidden units"}};
  for (const auto& [who, needs, has, remedy] : rooms) {
    if (has == 0 || needs <= has) continue;
    constexpr double kGib = 1 << 30;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} needs {:.2f} GiB and has {:.2f} GiB: {}", who, needs / kGib,
                             has / kGib, remedy)};
  }
  return plan;
}

}  // namespace gleaner

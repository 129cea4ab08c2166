#include "tools/plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "common/limits.hpp"
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
constexpr double kLevelBytes = 0.4;     // of a committed weight, as zstd leaves them
constexpr double kOutputRowBytes = 14;  // of a committed row besides: id, scale, bias, state
constexpr double kRecordBytes = 28;     // of a row or an entry in the store: key, checksum, filter
constexpr double kStagedRowBytes = 15;  // of a staged row besides its weights, of four bits
constexpr double kWire = 1 + 66 / 1448.;            // TCP's headers, over Ethernet
constexpr double kAcknowledged = 66 / (2 * 1448.);  // of the other way's bytes
constexpr double kProgramBytes = 40e6;              // a program before it holds anything
constexpr double kStoreCacheBytes = 250e6;          // the store's caches and logs

// The sizes that everything else is made of.
struct Shape {
  double labels, features, hidden, tables;
  double batch;    // examples
  double batches;  // per round
  double epoch_batches;
  double active, drawn;                 // neurons per example; of them, at random from all
  double output_rows, input_rows;       // touched in a round
  double stored_rows, stored_features;  // at the end of the run
  double shards, holders, held, share;  // held, share: the most that one volunteer has

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
  s.active = std::min(s.labels, chosen + (has_tables ? s.drawn : 0.0) + input.labels_per_point);
  s.drawn = std::min(s.drawn, s.active);
  const double choices = kOwnChoice * (s.active - s.drawn) + s.drawn;
  const double words = kOwnChoice * input.features_per_point;
  const double run = static_cast<double>(m.points) * m.epochs;
  s.output_rows = reached(choices * s.examples(), s.labels);
  s.input_rows = reached(words * s.examples(), s.features);
  s.stored_rows = reached(choices * run, s.labels);
  s.stored_features = reached(words * run, s.features);
  s.shards = m.output_shards;
  s.holders = std::min<double>(input.volunteers.count, s.shards);
  s.held = std::ceil(s.shards / s.holders);
  s.share = s.held / s.shards;
  return s;
}

TrafficPlan traffic_of(const PlanInput& input, const Shape& s) {
  const double rectified =
      input.model.hidden_units == HiddenUnits::kLinear ? 1 : input.rectified_on;
  const double on = rectified * (1 - input.model.dropout);
  const double codes = 4 + s.hidden * std::min(1.0, 1.0 / 8 + on);
  const double labels = std::max(input.labels_per_point * s.share, 1e-3);
  const double label_bytes = std::ceil(std::log2(std::max(s.labels / labels, 2.0)) / 7);
  const double entry_bytes = (kGradientBits - input.model.gradient_step_log2) / 8;
  TrafficPlan t;
  t.unit_down = kWire * (codes + 1 + labels * label_bytes + kUnitBytes / s.batch);
  t.unit_up =
      kWire * (1 + on * s.hidden * entry_bytes + (kResultBytes + kOutcomeBytes * s.held) / s.batch);
  t.commit_up =
      kWire * s.output_rows * s.share * (kLevelBytes * s.hidden + kOutputRowBytes) / s.examples();
  const double up = t.unit_up + t.commit_up;
  t.down = t.unit_down + kAcknowledged * up;
  t.up = up + kAcknowledged * t.unit_down;
  t.master_down = s.holders * t.down;
  t.master_up = s.holders * t.up;
  t.download =
      kWire * s.stored_rows * s.share * (4 * (s.hidden + 3) + s.tables * input.model.hash_bits / 8);
  return t;
}

// From one batch to the next where several are under way: each visits all stations, which serve one
// at a time for the seconds given, and besides is `delay` on its way. What a batch finds before it
// at a station is what stands there with one batch fewer under way: mean-value analysis of a closed
// network (Reiser and Lavenberg, J. ACM 27(2), 1980).
double batch_seconds(double under_way, double delay, std::span<const double> stations) {
  std::vector<double> queue(stations.size());
  double between = 0;
  for (double n = 1; n <= under_way; ++n) {
    double trip = delay;
    for (std::size_t i = 0; i < stations.size(); ++i) trip += stations[i] * (1 + queue[i]);
    between = trip / n;
    if (between == 0) break;
    for (std::size_t i = 0; i < stations.size(); ++i) {
      queue[i] = stations[i] * (1 + queue[i]) / between;
    }
  }
  return between;
}

struct Pace {
  double round = 0;
  double trip = 0;
  double examples_per_second = 0;
};

Pace pace_of(const PlanInput& input, const StepCosts& costs) {
  const Shape s = shape_of(input);
  const TrafficPlan t = traffic_of(input, s);
  const double byte = input.volunteers.mbit > 0 ? 8e-6 / input.volunteers.mbit : 0;
  const double master_byte = input.master.mbit > 0 ? 8e-6 / input.master.mbit : 0;
  // A volunteer's threads share its shards evenly.
  const double volunteer = s.batch * (s.share * s.active * costs.visit / input.volunteers.cores +
                                      s.hidden * costs.around) +
                           2 * costs.message;
  // The master's network thread, and beside it the input layer and the sum of gradients.
  const double network = 2 * costs.message * s.holders;
  const double worker =
      s.batch * (input.features_per_point * costs.feature + s.holders * s.hidden * costs.add_unit);
  const double master = std::max(network, (worker + network) / input.master.cores);
  const std::array stations = {volunteer,
                               master,
                               s.batch * t.down * byte,
                               s.batch * t.up * byte,
                               s.batch * t.master_down * master_byte,
                               s.batch * t.master_up * master_byte};
  const double in_flight = input.model.staleness + 1.0;
  const double batch = in_flight < s.batches ? batch_seconds(in_flight, input.round_trip, stations)
                                             : *std::max_element(stations.begin(), stations.end());
  Pace pace;
  pace.trip = input.round_trip + volunteer + master +
              s.batch * (t.unit_down + t.unit_up) * (byte + s.holders * master_byte);
  // A round fills the pipeline, then keeps its pace.
  pace.round = pace.trip + std::max(0.0, s.batches - 1) * batch;
  pace.examples_per_second =
      pace.round > 0 ? s.examples() / pace.round : std::numeric_limits<double>::infinity();
  return pace;
}

PlanInput with_twice(PlanInput input, Resource resource) {
  ModelConfig& m = input.model;
  if (resource == Resource::kVolunteers) input.volunteers.cores *= 2;
  if (resource == Resource::kShards) m.output_shards = std::min(2 * m.output_shards, m.labels);
  if (resource == Resource::kMaster) input.master.cores *= 2;
  if (resource == Resource::kMasterLink) input.master.mbit *= 2;
  if (resource == Resource::kVolunteerLink) input.volunteers.mbit *= 2;
  if (resource == Resource::kLag) m.staleness = 2 * m.staleness + 1;
  if (resource == Resource::kRound) m.round_batches *= 2;
  return input;
}

void add_memory(const PlanInput& input, const Shape& s, Plan& plan) {
  const double row = 4 * (s.hidden + 1) + kRecordBytes;  // weights and optimizer state
  const double code_bytes = std::ceil(input.model.hash_bits / 8.0);
  const double entry = s.tables > 0 ? s.tables * code_bytes + 1 + kRecordBytes : 0;
  plan.store_content = s.stored_rows * (row + 4 + entry) + s.stored_features * row + 4 * s.labels;
  plan.store_most = 2 * plan.store_content +
                    2 * (s.output_rows + s.input_rows) * (s.hidden / 2 + kStagedRowBytes);
  const double data = static_cast<double>(input.model.points) *
                      (8 * input.features_per_point + 4 * input.labels_per_point + 16);
  const double input_layer = 4 * s.features * (s.hidden + 2) + 4 * s.input_rows * s.hidden;
  // Two rounds of activations are kept for replays; parts of commits have come, a byte a weight.
  const double log = 2 * s.examples() * plan.traffic.unit_down;
  const double parts = std::min(
      static_cast<double>(input.volunteers.count * kCommitPartsInFlight * 2 * kRowsPerChunkBytes),
      s.output_rows * (s.hidden + 18));
  plan.master_memory =
      kProgramBytes + kStoreCacheBytes + data + input_layer + log + parts + 16 * s.labels;
  // Its shards, and a round's commits until they have left.
  plan.volunteer_memory = kProgramBytes +
                          s.held * static_cast<double>(ShardTrainer::shard_bytes(input.model)) +
                          s.output_rows * s.share * (1.5 * s.hidden + 28);
}

Result<void> check(const PlanInput& input) {
  if (auto valid = validate(input.model); !valid) return valid;
  if (is_wide(input.model)) {
    return Error{ErrorCode::kInvalidArgument,
                 "hidden is 0: runs without a hidden layer are not planned"};
  }
  return {};
}

}  // namespace

Result<Plan> make_plan(const PlanInput& input, const StepCosts& costs) {
  if (auto checked = check(input); !checked) return checked.error();
  const Shape s = shape_of(input);
  const Pace pace = pace_of(input, costs);
  Plan plan;
  plan.examples_per_second = pace.examples_per_second;
  plan.round_seconds = pace.round;
  plan.epoch_seconds = pace.round * s.epoch_batches / s.batches;
  plan.run_seconds = plan.epoch_seconds * input.model.epochs;
  plan.trip_seconds = pace.trip;
  double most = 0;
  for (std::size_t i = 0; i < kResources.size(); ++i) {
    const auto resource = static_cast<Resource>(i);
    const double speed = pace_of(with_twice(input, resource), costs).examples_per_second;
    if (speed <= most) continue;
    most = speed;
    plan.limit = resource;
  }
  plan.active = s.active;
  plan.holders = s.holders;
  plan.traffic = traffic_of(input, s);
  add_memory(input, s, plan);
  const double memory = input.volunteers.memory;
  if (memory > 0 && plan.volunteer_memory > memory) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("a volunteer needs {:.2f} GiB and has {:.2f} GiB: more volunteers, or "
                             "more --shards where they are fewer than volunteers",
                             plan.volunteer_memory / (1 << 30), memory / (1 << 30))};
  }
  return plan;
}

}  // namespace gleaner

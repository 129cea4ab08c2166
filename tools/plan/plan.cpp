#include "tools/plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "common/limits.hpp"
#include "common/model/run_plan.hpp"
#include "common/train/input_trainer.hpp"
#include "common/train/shard_trainer.hpp"
#include "master/core/core_config.hpp"
#include "tools/plan/plan_parts.hpp"

namespace gleaner {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

constexpr double kProgramBytes = 40e6;      // a program before it holds anything
constexpr double kStoreCacheBytes = 250e6;  // the store's caches and logs
constexpr double kCoresMax = 1024;
constexpr double kMbitMax = 1e6;
constexpr double kRoundTripMax = 60;

double seconds_a_byte(double mbit) {
  return mbit > 0 ? 8e-6 / mbit : 0;
}

double per_second(double examples, double seconds) {
  return seconds > 0 ? examples / seconds : kUnlimited;
}

// Seconds of a batch and of a round, of who does them.
struct Loads {
  double even = 0;       // a batch on a volunteer, if all had as much
  double volunteer = 0;  // on the one with the most
  double master = 0;     // on the master
  double commit = 0;     // a round's end, before which the next cannot begin
  double master_round = 0;
  double machine_round = 0;  // of one machine for all: everything that a round takes of it
};

Loads loads_of(const PlanInput& input, const Work& w, const Shape& s, const Scale& scale) {
  // A volunteer's threads share its shards evenly.
  const double cores = input.volunteers.cores;
  const double core_share = s.share / cores;
  const double speed = scale[Resource::kVolunteers];
  const double master_cores = input.master.cores;
  const double network = w.network * s.holders + w.input_network * s.input_holders;
  Loads loads;
  if (input.is_one_machine) {
    const double all = w.layer + w.input + w.volunteer * s.holders +
                       w.input_holder * s.input_holders + w.worker + network;
    const double commits = w.output_commit + w.input_commit + w.take_commits;
    loads.volunteer = loads.even = all / master_cores / speed;
    loads.commit = (w.output_commit + w.input_commit) / master_cores / speed;
    loads.machine_round =
        s.batches * loads.volunteer + (commits + w.store_processor) / master_cores / speed;
    return loads;
  }
  const double each = w.volunteer + w.input_holder;
  const double input_share = s.input_share / cores;
  const double master_speed = scale[Resource::kMaster];
  loads.even = ((w.layer / s.holders + w.input * s.input_share) / cores + each) / speed;
  loads.volunteer = (w.layer * core_share + w.input * input_share + each) / speed;
  loads.master = std::max(network, (w.worker + network) / master_cores) / master_speed;
  loads.master_round =
      s.batches * loads.master + w.take_commits / std::min(master_cores, 2.0) / master_speed;
  const double volunteer_commit = w.output_commit * core_share + w.input_commit * input_share;
  const double master_commit =
      s.input_share > 0 ? 0.0 : w.input_commit / master_cores / master_speed;
  loads.commit = std::max(volunteer_commit / speed, master_commit);
  return loads;
}

// Seconds that the links take, the slower one of the volunteer with the most and of the master.
struct Wires {
  double down = 0;  // for a batch, everything, over the volunteer's link
  double up = 0;
  double master_down = 0;  // the same over the master's
  double master_up = 0;
  double trip = 0;       // for a batch, there and back, one link after the other
  double commits = 0;    // for a round
  double volunteer = 0;  // for a round, everything
  double master = 0;
};

Wires wires_of(const PlanInput& input, const Traffic& t, const Shape& s, const Scale& scale) {
  const double volunteer_byte =
      seconds_a_byte(input.volunteers.mbit) / scale[Resource::kVolunteerLink];
  const double master_byte = seconds_a_byte(input.master.mbit) / scale[Resource::kMasterLink];
  const double down = t.unit_down + t.input_down;
  const double up = t.unit_up + t.input_up;
  const double master_down = t.unit_down * s.holders + t.input_down * s.input_holders;
  const double master_up = t.unit_up * s.holders + t.input_up * s.input_holders;
  Wires wires;
  wires.down = s.batch * t.down * volunteer_byte;
  wires.up = s.batch * t.up * volunteer_byte;
  wires.master_down = s.batch * t.master_down * master_byte;
  wires.master_up = s.batch * t.master_up * master_byte;
  wires.trip = s.batch * ((down + up) * volunteer_byte + (master_down + master_up) * master_byte);
  wires.commits = t.commit_up * s.examples() * std::max(volunteer_byte, s.holders * master_byte);
  wires.volunteer = s.batches * std::max(wires.down, wires.up);
  wires.master = s.batches * std::max(wires.master_down, wires.master_up);
  return wires;
}

// From one batch to the next where several are under way: each visits all stations, which serve one
// at a time for the seconds given, and besides is `delay` on its way. What a batch finds before it
// at a station is what stands there with one batch fewer under way: mean-value analysis of a closed
// network (Reiser and Lavenberg, J. ACM 27(2), 1980). So stations that are nearly used up make one
// another wait, which the longest of them alone does not say.
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

// The time of a round, and what it is made of.
struct Pace {
  double round = 0;
  double trip = 0;
  double delay = 0;                               // of it, on the way
  std::array<double, 6> stations{};               // a batch's seconds at each
  double batch = 0;                               // from one batch to the next
  std::array<double, kResources.size()> alone{};  // examples a second
};

Pace pace_of(const PlanInput& input, const MachineCosts& costs, const Scale& scale) {
  const Shape s = shape_of(input, scale);
  const Traffic t = traffic_of(input, s);
  const Work w = work_of(input, costs, s, t);
  const Loads loads = loads_of(input, w, s, scale);
  const Wires wires = wires_of(input, t, s, scale);
  Pace pace;
  // One batch by itself: out to everyone, trained, back, and through the input layer, which is
  // another trip where that is with the volunteers.
  const double trips = s.input_share > 0 ? 2 : 1;
  pace.delay = trips * input.round_trip;
  pace.trip = pace.delay + wires.trip + loads.volunteer + loads.master;
  const double in_flight = (input.model.staleness + 1.0) * scale[Resource::kLag];
  const double lag = in_flight < s.batches ? pace.trip / in_flight : 0;
  pace.stations = {loads.volunteer, loads.master,      wires.down,
                   wires.up,        wires.master_down, wires.master_up};
  pace.batch = in_flight < s.batches
                   ? batch_seconds(in_flight, pace.delay, pace.stations)
                   : *std::max_element(pace.stations.begin(), pace.stations.end());
  // A round fills the pipeline, keeps its pace, and every shard commits.
  const double train = pace.trip + std::max(0.0, s.batches - 1) * pace.batch + loads.commit;
  const double store = w.store / scale[Resource::kStore];
  // The next round runs meanwhile; the one after begins when this one is folded.
  const double folded = (train + wires.commits + store) / 2;
  pace.round = std::max({train, folded, wires.volunteer, wires.master, store, loads.master_round,
                         loads.machine_round});

  const auto alone = [&](Resource r) -> double& { return pace.alone[static_cast<std::size_t>(r)]; };
  alone(Resource::kVolunteers) = input.is_one_machine
                                     ? per_second(s.examples(), loads.machine_round)
                                     : per_second(s.batch, loads.even);
  alone(Resource::kShards) =
      input.is_one_machine ? kUnlimited : per_second(s.batch, loads.volunteer);
  alone(Resource::kMaster) = per_second(s.examples(), loads.master_round);
  alone(Resource::kMasterLink) = per_second(s.examples(), wires.master);
  alone(Resource::kVolunteerLink) = per_second(s.examples(), wires.volunteer);
  alone(Resource::kLag) = per_second(s.batch, lag);
  alone(Resource::kRound) = per_second(s.examples(), pace.round - s.batches * pace.batch);
  alone(Resource::kStore) = per_second(s.examples(), store);
  return pace;
}

double examples_per_second(const PlanInput& input, const MachineCosts& costs, const Scale& scale) {
  return shape_of(input, scale).examples() / pace_of(input, costs, scale).round;
}

// The time that a run takes longer because its first batches are trained with a smaller lag.
double rise_seconds(const ModelConfig& model, const Pace& pace) {
  const RunPlan plan(model);
  double seconds = 0;
  BatchIndex end = 0;
  for (BatchIndex batch = 0; batch < plan.batch_count(); batch = end) {
    const std::uint32_t lag = plan.lag(batch);
    if (lag == model.staleness) break;
    end = plan.lag_end(batch);
    const double between = batch_seconds(lag + 1.0, pace.delay, pace.stations);
    seconds += static_cast<double>(end - batch) * std::max(0.0, between - pace.batch);
  }
  return seconds;
}

// The one of which more would help most; where nothing alone helps, the one that is used up.
Resource limit_of(const std::vector<Bound>& bounds, double now) {
  constexpr double kGainMin = 1.02;
  const auto most =
      std::max_element(bounds.begin(), bounds.end(),
                       [](const auto& a, const auto& b) { return a.doubled < b.doubled; });
  if (most->doubled > kGainMin * now) return most->resource;
  return std::min_element(bounds.begin(), bounds.end(),
                          [](const auto& a, const auto& b) {
                            return a.examples_per_second < b.examples_per_second;
                          })
      ->resource;
}

void add_memory(const PlanInput& input, const Shape& s, Plan& plan) {
  const StoredBytes bytes = stored_bytes(input, s);
  plan.store_content =
      s.stored_rows * bytes.output_row + s.stored_features * bytes.input_row + 4 * s.labels;
  plan.store_most = 2 * plan.store_content + 2 * s.rows() * bytes.staged_row;
  const double points = static_cast<double>(input.model.points);
  const double data = points * (8 * input.features_per_point + 4 * input.labels_per_point + 16);
  const double input_layer =
      s.input_share > 0 ? 0.0 : 4 * s.features * (s.hidden + 2) + 4 * s.input_rows * s.hidden;
  // A fold is done in small steps; two rounds of quantized activations are kept for replays, and of
  // gradients for input shards.
  const double log =
      2 * s.examples() * (plan.traffic.unit_down + s.input_holders * plan.traffic.input_down);
  // Parts of commits that have come, a byte a weight; volunteers wait with the others.
  const double parts = std::min(
      static_cast<double>(input.volunteers.count * kCommitPartsInFlight * 2 * kRowsPerChunkBytes),
      (s.output_rows + s.input_rows * (s.input_share > 0 ? 1 : 0)) * (s.hidden + 18));
  plan.master_memory =
      kProgramBytes + kStoreCacheBytes + data + input_layer + log + parts + 16 * s.labels;
  // Memory for the shards, and a round's commits until they have left.
  plan.volunteer_memory =
      kProgramBytes + s.held * static_cast<double>(ShardTrainer::shard_bytes(input.model)) +
      s.input_held * static_cast<double>(InputTrainer::shard_bytes(input.model)) +
      (s.output_rows * s.share + s.input_rows * s.input_share) * (1.5 * s.hidden + 28);
}

void add_recovery(const PlanInput& input, const MachineCosts& costs, const Shape& s, const Work& w,
                  Plan& plan) {
  // Its shards go to as many of the others as there are; alone, it has to come back itself.
  const double others = std::clamp(input.volunteers.count - 1.0, 1.0, s.held);
  const double taken = std::ceil(s.held / others) / s.held;
  const double volunteer_byte = seconds_a_byte(input.volunteers.mbit);
  const double master_byte = seconds_a_byte(input.master.mbit);
  const double read = (s.stored_rows * s.share + s.stored_features * s.input_share) *
                      costs.read_row * s.hidden / costs.hidden;
  plan.reload_seconds =
      2 * input.round_trip + std::max({plan.traffic.download * taken * volunteer_byte,
                                       plan.traffic.download * master_byte, read});
  const double compute =
      (w.layer * s.share * taken + w.input * s.input_share * taken + w.volunteer + w.input_holder) /
      input.volunteers.cores;
  const double bytes = s.batch * (plan.traffic.unit_down + plan.traffic.input_down) *
                       std::max(volunteer_byte, others * master_byte);
  plan.replay_seconds = s.batches / 2 * std::max(compute, bytes);
  plan.silence_seconds = std::chrono::duration<double>(CoreConfig().silence).count();
}

Result<void> in_range(const char* name, double value, double low, double high) {
  // Written so that a NaN fails.
  if (value >= low && value <= high) return {};
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} cannot be {}: from {} to {}", name, value, low, high)};
}

Result<void> check(const PlanInput& input) {
  if (auto valid = validate(input.model); !valid) return valid;
  if (input.volunteers.count == 0) {
    return Error{ErrorCode::kInvalidArgument, "without volunteers nobody trains: at least 1"};
  }
  const ModelConfig& m = input.model;

  struct Range {
    const char* name;
    double value, low, high;
  };

  for (const Range& r : {
           Range{"volunteers", double(input.volunteers.count), 1, kOutputShardsMax},
           Range{"cores of a volunteer", double(input.volunteers.cores), 1, kCoresMax},
           Range{"cores of the master", double(input.master.cores), 1, kCoresMax},
           Range{"Mbit/s of a volunteer", input.volunteers.mbit, 0, kMbitMax},
           Range{"Mbit/s of the master", input.master.mbit, 0, kMbitMax},
           Range{"seconds of a round trip", input.round_trip, 0, kRoundTripMax},
           Range{"features per example", input.features_per_point, 0, double(m.features)},
           Range{"labels per example", input.labels_per_point, 0, double(m.labels)},
       }) {
    if (auto checked = in_range(r.name, r.value, r.low, r.high); !checked) return checked;
  }
  return {};
}

}  // namespace

Result<Plan> make_plan(const PlanInput& input, const MachineCosts& costs) {
  if (auto checked = check(input); !checked) return checked.error();
  const Scale as_it_is;
  const Shape s = shape_of(input, as_it_is);
  const Traffic traffic = traffic_of(input, s);
  const Work w = work_of(input, costs, s, traffic);
  const Pace pace = pace_of(input, costs, as_it_is);
  Plan plan;
  plan.examples_per_second = s.examples() / pace.round;
  plan.round_seconds = pace.round;
  plan.epoch_seconds = pace.round * s.epoch_batches / s.batches;
  plan.trip_seconds = pace.trip;
  plan.rise_seconds = rise_seconds(input.model, pace);
  for (const Resource resource : kResources) {
    Scale scale;
    scale[resource] = 2;
    plan.bounds.push_back({resource, pace.alone[static_cast<std::size_t>(resource)],
                           examples_per_second(input, costs, scale)});
  }
  plan.limit = limit_of(plan.bounds, plan.examples_per_second);
  plan.active = s.active;
  plan.visits_a_row = s.active * s.batch / s.rows_a_batch;
  plan.rows_a_round = s.rows();
  plan.holders = s.holders;
  plan.input_holders = s.input_holders;
  plan.traffic = traffic;
  plan.stage_seconds = w.stage;
  plan.fold_seconds = w.fold;
  add_memory(input, s, plan);
  add_recovery(input, costs, s, w, plan);
  return plan;
}

}  // namespace gleaner

#include "tools/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "common/limits.hpp"
#include "master/core/core_config.hpp"
#include "volunteer/train/shard_trainer.hpp"

namespace gleaner {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// Examples of a batch share neurons: they visit as many rows as if each chose so much of its own at
// random. Counted on three data sets, see tools/PLAN.md.
constexpr double kOwnChoice = 1.0 / 3.0;
constexpr double kUnitsOn = 0.5;      // hidden units that are not zero
constexpr double kGradientBits = 14;  // of an entry of the largest magnitudes
constexpr double kUnitBytes = 120;    // of a unit besides its examples
constexpr double kResultBytes = 60;   // of a result, and for each shard of a batch:
constexpr double kOutcomeBytes = 32;
constexpr double kLevelBytes = 0.4;     // of a committed weight, as zstd leaves them
constexpr double kSegmentBytes = 1448;  // TCP's, over Ethernet
constexpr double kHeaderBytes = 66;
constexpr double kRecordBytes = 28;     // of a row or an entry in the store: key, checksum, filter
constexpr double kProgramBytes = 40e6;  // a program before it holds anything
constexpr double kStoreCacheBytes = 250e6;  // the store's caches and logs
constexpr double kCoresMax = 1024;
constexpr double kMbitMax = 1e6;
constexpr double kRoundTripMax = 60;

// How many times as much there is of each resource.
struct Scale {
  std::array<double, kResources.size()> of;

  Scale() { of.fill(1); }

  double& operator[](Resource r) { return of[static_cast<std::size_t>(r)]; }

  double operator[](Resource r) const { return of[static_cast<std::size_t>(r)]; }
};

double seconds_a_byte(double mbit) {
  return mbit > 0 ? 8e-6 / mbit : 0;
}

double per_second(double examples, double seconds) {
  return seconds > 0 ? examples / seconds : kUnlimited;
}

// How many of `all` rows so many choices reach.
double reached(double choices, double all) {
  return all * -std::expm1(-kOwnChoice * choices / all);
}

// Bytes of a varint of a gap between ascending ids.
double varint_bytes(double gap) {
  return std::max(1.0, std::ceil(std::log2(std::max(gap, 2.0)) / 7));
}

// The sizes that everything else is made of.
struct Shape {
  double labels, features, hidden, tables;
  double batch;    // examples
  double batches;  // a round
  double epoch_batches;
  double active;                        // neurons an example
  double rows_a_batch;                  // visited
  double output_rows, input_rows;       // touched in a round
  double stored_rows, stored_features;  // at the end of the run
  double shards, holders, held;  // output shards; volunteers that have some; the most one has
  double share;                  // of the layer, of the one with the most

  [[nodiscard]] double examples() const { return batch * batches; }

  [[nodiscard]] double rows() const { return output_rows + input_rows; }
};

Shape shape_of(const PlanInput& input, const Scale& scale) {
  const ModelConfig& m = input.model;
  Shape s{};
  s.labels = m.labels;
  s.features = m.features + 1.0;  // the bias is a row as well
  s.hidden = m.hidden;
  s.tables = m.sampling == Sampling::kLsh ? m.tables : 0.0;
  s.batch = m.batch_examples;
  s.epoch_batches = std::ceil(static_cast<double>(m.points) / s.batch);
  // Rounds are about equally long.
  const std::uint32_t whole_epochs = epochs_per_round(m);
  s.batches = scale[Resource::kRound] *
              (whole_epochs > 1 ? whole_epochs * s.epoch_batches
                                : s.epoch_batches / std::ceil(s.epoch_batches / m.round_batches));
  const double chosen = m.sampling == Sampling::kAll ? s.labels
                        : m.sampling == Sampling::kRandom
                            ? m.active_cap
                            : static_cast<double>(m.active_cap) + m.random_negatives;
  s.active = std::min(s.labels, chosen + input.labels_per_point);
  s.rows_a_batch = reached(s.active * s.batch, s.labels);
  s.output_rows = reached(s.active * s.examples(), s.labels);
  s.input_rows = reached(input.features_per_point * s.examples(), s.features);
  const double run = static_cast<double>(m.points) * m.epochs;
  s.stored_rows = reached(s.active * run, s.labels);
  s.stored_features = reached(input.features_per_point * run, s.features);
  s.shards = std::min(s.labels, m.output_shards * scale[Resource::kShards]);
  s.holders = std::min<double>(input.volunteers.count, s.shards);
  s.held = std::ceil(s.shards / s.holders);
  s.share = s.held / s.shards;
  return s;
}

// Seconds of one core.
struct Work {
  double layer;          // a batch on all shards
  double volunteer;      // a batch, besides, on every volunteer
  double worker;         // a batch, the master's worker
  double network;        // a batch, the master's other thread, for every volunteer
  double output_commit;  // a round, on all volunteers together
  double store;          // a round: what its thread takes, and of that the processor
  double store_processor;
  double stage, fold;
};

// Rows of a layer lie in caches as far as they fit: by the layers measured, over their bytes.
double fetch_seconds(const MachineCosts& costs, double bytes) {
  const auto place = [&](const MachineCosts::LayerRow& layer) {
    return std::log(layer.rows * 4.0 * (costs.hidden + costs.tables));
  };
  const double wanted = std::log(bytes);
  if (wanted <= place(costs.row.front())) return costs.row.front().seconds;
  for (std::size_t i = 1; i < costs.row.size(); ++i) {
    const double begin = place(costs.row[i - 1]);
    const double end = place(costs.row[i]);
    if (wanted > end) continue;
    const double part = (wanted - begin) / (end - begin);
    return costs.row[i - 1].seconds * (1 - part) + costs.row[i].seconds * part;
  }
  return costs.row.back().seconds;
}

Work work_of(const PlanInput& input, const MachineCosts& costs, const Shape& s) {
  const double h = s.hidden / costs.hidden;
  const double t = s.tables / costs.tables;
  const double machine_share = input.is_one_machine ? 1.0 : s.share;
  const double fetch =
      fetch_seconds(costs, machine_share * s.labels * 4 * (s.hidden + s.tables)) * h;
  const double rehashed = reached(s.active * s.batch * input.model.rehash_batches, s.labels);
  Work w{};
  w.layer = s.batch * s.active * costs.visit * h + s.rows_a_batch * fetch + s.labels * costs.scan +
            s.batch * s.shards * costs.finish * h +
            rehashed * costs.rehash_row * h * t / input.model.rehash_batches;
  w.volunteer = s.batch * h * (costs.query * t + costs.unpack_codes + costs.pack_gradient);
  w.worker =
      s.batch * h *
      (input.features_per_point * (costs.input_forward + costs.input_backward) + costs.pack_codes);
  w.network = s.batch * h * costs.add_gradient;
  w.output_commit = s.output_rows * costs.commit_row * h;
  w.stage = s.rows() * costs.stage_row * h;
  w.fold = s.rows() * costs.fold_row * h;
  w.store = w.stage + w.fold;
  w.store_processor = s.rows() * costs.store_row_processor * h;
  return w;
}

Traffic traffic_of(const PlanInput& input, const Shape& s) {
  constexpr double kWire = 1 + kHeaderBytes / kSegmentBytes;
  constexpr double kAcknowledged = kHeaderBytes / (2 * kSegmentBytes);  // every other segment
  const double on = kUnitsOn * (1 - input.model.dropout);
  const double codes = 4 + s.hidden * std::min(1.0, 1.0 / 8 + on);
  const double labels = std::max(input.labels_per_point * s.share, 1e-3);
  Traffic t;
  t.unit_down =
      kWire * (codes + 1 + labels * varint_bytes(s.labels / labels) + kUnitBytes / s.batch);
  t.unit_up = kWire * (1 + on * s.hidden * kGradientBits / 8 +
                       (kResultBytes + kOutcomeBytes * s.held) / s.batch);
  t.commit_up = kWire * s.output_rows * s.share * (kLevelBytes * s.hidden + 14) / s.examples();
  t.down = t.unit_down + kAcknowledged * (t.unit_up + t.commit_up);
  t.up = t.unit_up + t.commit_up + kAcknowledged * t.unit_down;
  t.download = kWire * s.stored_rows * s.share *
               (4 * (s.hidden + 3) + (s.tables > 0 ? s.tables * input.model.hash_bits / 8 : 0));
  return t;
}

// The time of a round, and what it is made of.
struct Pace {
  double round = 0;
  double trip = 0;
  double batch = 0;                               // from one batch to the next
  std::array<double, kResources.size()> alone{};  // examples a second
};

Pace pace_of(const PlanInput& input, const MachineCosts& costs, const Scale& scale) {
  const Shape s = shape_of(input, scale);
  const Work w = work_of(input, costs, s);
  const Traffic t = traffic_of(input, s);
  const double volunteer_byte =
      seconds_a_byte(input.volunteers.mbit) / scale[Resource::kVolunteerLink];
  const double master_byte = seconds_a_byte(input.master.mbit) / scale[Resource::kMasterLink];
  const double wide = std::max(t.down, t.up);  // of the two directions the fuller one

  // Threads own whole shards, so that a core has so much of what the volunteer has:
  const double cores = input.volunteers.cores;
  const double core_share = std::ceil(s.held / cores) / s.shards;
  const double even_share = 1 / (s.holders * cores);
  const double speed = scale[Resource::kVolunteers];
  const double master_speed = scale[Resource::kMaster];
  const double master_cores = input.master.cores;
  const double network = w.network * s.holders;
  double volunteer = (w.layer * core_share + w.volunteer) / speed;
  double commit = w.output_commit * core_share / speed;
  double master = std::max(network, (w.worker + network) / master_cores) / master_speed;
  double processor_round = 0;
  if (input.is_one_machine) {
    const double all = w.layer + w.volunteer * s.holders + w.worker + network;
    volunteer = all / master_cores / speed;
    commit = w.output_commit / master_cores / speed;
    master = 0;
    processor_round = s.batches * volunteer + commit + w.store_processor / master_cores / speed;
  }

  Pace pace;
  // One batch by itself: out to everyone, trained, back, and through the input layer.
  pace.trip = input.round_trip +
              s.batch * (t.unit_down + t.unit_up) * (volunteer_byte + s.holders * master_byte) +
              volunteer + master;
  const double links = s.batch * std::max(t.unit_down, t.unit_up) *
                       std::max(volunteer_byte, s.holders * master_byte);
  const double in_flight = (input.model.staleness + 1.0) * scale[Resource::kLag];
  const double lag = in_flight < s.batches ? pace.trip / in_flight : 0;
  pace.batch = std::max({volunteer, master, links, lag});
  // A round fills the pipeline, keeps its pace, and every shard commits.
  const double train = pace.trip + std::max(0.0, s.batches - 1) * pace.batch + commit;
  const double upload =
      t.commit_up * s.examples() * std::max(volunteer_byte, s.holders * master_byte);
  const double store = w.store / scale[Resource::kStore];
  // The next round runs meanwhile; the one after begins when this one is folded.
  const double folded = (train + upload + store) / 2;
  const double all_links = s.examples() * wide * std::max(volunteer_byte, s.holders * master_byte);
  pace.round = std::max({train, folded, all_links, store, processor_round});

  const auto alone = [&](Resource r) -> double& { return pace.alone[static_cast<std::size_t>(r)]; };
  const double even = (w.layer * even_share + w.volunteer) / speed;
  alone(Resource::kVolunteers) =
      per_second(s.batch, input.is_one_machine ? processor_round / s.batches : even);
  alone(Resource::kShards) = input.is_one_machine ? kUnlimited : per_second(s.batch, volunteer);
  alone(Resource::kMaster) = per_second(s.batch, master);
  alone(Resource::kMasterLink) = per_second(1, wide * s.holders * master_byte);
  alone(Resource::kVolunteerLink) = per_second(1, wide * volunteer_byte);
  alone(Resource::kLag) = per_second(s.batch, lag);
  alone(Resource::kRound) = per_second(s.examples(), pace.round - s.batches * pace.batch);
  alone(Resource::kStore) = per_second(s.examples(), store);
  return pace;
}

double examples_per_second(const PlanInput& input, const MachineCosts& costs, const Scale& scale) {
  return shape_of(input, scale).examples() / pace_of(input, costs, scale).round;
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
  const double row = 4 * (s.hidden + 2) + kRecordBytes;
  const double code_bytes = std::ceil(input.model.hash_bits / 8.0);
  const double entry = s.tables > 0 ? s.tables * code_bytes + 1 + kRecordBytes : 0;
  const double staged = s.rows() * (s.hidden / 2 + 14 + 1);
  plan.store_content = s.stored_rows * (row + entry) + s.stored_features * (row - 4) + 4 * s.labels;
  plan.store_most = 2 * plan.store_content + 2 * staged;
  const double points = static_cast<double>(input.model.points);
  const double data = points * (8 * input.features_per_point + 4 * input.labels_per_point + 16);
  const double input_layer = 4 * s.features * (s.hidden + 2) + 4 * s.input_rows * s.hidden;
  // A fold is done in small steps; two rounds of hidden codes are kept for replays.
  const double log = 2 * s.examples() * plan.traffic.unit_down;
  plan.master_memory = kProgramBytes + kStoreCacheBytes + data + input_layer + log + 16 * s.labels;
  // What the shards take, and a round's commits until they have left.
  plan.volunteer_memory = kProgramBytes +
                          s.held * static_cast<double>(ShardTrainer::shard_bytes(input.model)) +
                          s.output_rows * s.share * (1.5 * s.hidden + 28);
}

void add_recovery(const PlanInput& input, const MachineCosts& costs, const Shape& s, const Work& w,
                  Plan& plan) {
  // Its shards go to as many of the others as there are; alone, it has to come back itself.
  const double others = std::clamp(input.volunteers.count - 1.0, 1.0, s.held);
  const double taken = std::ceil(s.held / others) / s.held;
  const double volunteer_byte = seconds_a_byte(input.volunteers.mbit);
  const double master_byte = seconds_a_byte(input.master.mbit);
  const double read = s.stored_rows * s.share * costs.read_row * s.hidden / costs.hidden;
  plan.reload_seconds =
      2 * input.round_trip + std::max({plan.traffic.download * taken * volunteer_byte,
                                       plan.traffic.download * master_byte, read});
  const double compute = (w.layer * s.share * taken + w.volunteer) / input.volunteers.cores;
  const double bytes =
      s.batch * plan.traffic.unit_down * std::max(volunteer_byte, others * master_byte);
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
           Range{"features a point", input.features_per_point, 0, double(m.features)},
           Range{"labels a point", input.labels_per_point, 0, double(m.labels)},
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
  const Work w = work_of(input, costs, s);
  const Pace pace = pace_of(input, costs, as_it_is);
  Plan plan;
  plan.examples_per_second = s.examples() / pace.round;
  plan.round_seconds = pace.round;
  plan.epoch_seconds = pace.round * s.epoch_batches / s.batches;
  plan.trip_seconds = pace.trip;
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
  plan.traffic = traffic_of(input, s);
  plan.stage_seconds = w.stage;
  plan.fold_seconds = w.fold;
  add_memory(input, s, plan);
  add_recovery(input, costs, s, w, plan);
  return plan;
}

const char* resource_name(Resource resource) {
  switch (resource) {
    case Resource::kVolunteers:
      return "processors";
    case Resource::kShards:
      return "shards";
    case Resource::kMaster:
      return "master's processor";
    case Resource::kMasterLink:
      return "master's link";
    case Resource::kVolunteerLink:
      return "volunteers' links";
    case Resource::kLag:
      return "lag";
    case Resource::kRound:
      return "rounds' length";
    case Resource::kStore:
      return "store";
  }
  return "";
}

const char* resource_remedy(Resource resource) {
  switch (resource) {
    case Resource::kVolunteers:
      return "more volunteers or cores, fewer active neurons";
    case Resource::kShards:
      return "more shards, a multiple of all cores";
    case Resource::kMaster:
      return "more cores for the master";
    case Resource::kMasterLink:
      return "a faster link, fewer volunteers with more cores each";
    case Resource::kVolunteerLink:
      return "faster links, longer rounds, fewer hidden units";
    case Resource::kLag:
      return "a larger --staleness, larger batches";
    case Resource::kRound:
      return "longer rounds";
    case Resource::kStore:
      return "a faster disk, longer rounds";
  }
  return "";
}

}  // namespace gleaner

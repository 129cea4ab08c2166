#include "tests/sim/fault_plan.hpp"

#include <fmt/format.h>

#include <span>

#include "common/counter_random.hpp"
#include "tests/sim/cluster.hpp"

namespace gleaner::sim {
namespace {

constexpr std::array<const char*, kFaultKinds> kNames = {
    "reset",
    "half_open",
    "stall",
    "partition",
    "volunteer_kill",
    "volunteer_power",
    "volunteer_freeze",
    "volunteer_stop",
    "volunteer_slow",
    "volunteer_memory",
    "twin",
    "strangers_silent",
    "strangers_garbage",
    "master_kill",
    "master_power",
    "master_stop",
    "master_in_recovery",
    "master_in_fold",
    "disk_slow",
    "disk_read",
    "disk_write",
    "disk_full",
    "volunteer_gone",
    "ban",
};

// Distinct from the stream that steers the run itself.
constexpr std::uint64_t kPlanStream = 1;

// One volunteer may hold this many, in all its shards.
constexpr std::size_t kRowsMost = 128;

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed, Purpose::kSimulation, kPlanStream) {}

  // Log-uniform: small values are as likely as large ones.
  template <typename T>
  T between(T low, T high) {
    const std::uint64_t ratio_log2 = log2_of(static_cast<std::uint64_t>(high / low));
    const auto step = static_cast<T>(std::uint64_t{1} << random_.next_below(ratio_log2 + 1));
    const T base = low * step;
    const T value = base + static_cast<T>(random_.next_below(static_cast<std::uint64_t>(base)));
    return value > high ? high : value;
  }

  Millis millis(std::int64_t low, std::int64_t high) { return Millis(between(low, high)); }

  bool chance(std::uint64_t numerator, std::uint64_t denominator) {
    return random_.chance(numerator, denominator);
  }

  template <typename T>
  T one_of(std::initializer_list<T> values) {
    return *(values.begin() + random_.next_below(values.size()));
  }

 private:
  static std::uint64_t log2_of(std::uint64_t value) {
    std::uint64_t log = 0;
    while (value > 1) {
      value >>= 1;
      ++log;
    }
    return log;
  }

  Rng random_;
};

void draw_model(ModelConfig& model, Draw& draw) {
  // Few values each: every combination needs a calm run of its own to compare with.
  model.staleness = draw.one_of({0u, 1u, 2u, 2u, 11u});
  if (model.staleness == 11) model.staleness_rise = draw.one_of({0u, 2u});
  model.output_shards = draw.one_of({1u, 3u, 5u, 5u, 9u});
  model.round_batches = draw.one_of({2u, 5u, 5u, 12u, 24u});
  if (epochs_per_round(model) > 1) model.epochs = 2 * epochs_per_round(model);
}

void draw_settings(ClusterOptions& options, Draw& draw) {
  CoreConfig& master = options.master;
  master.heartbeat = draw.millis(100, 500);
  master.silence = master.heartbeat * draw.one_of({3, 5, 10});
  master.join_timeout = draw.millis(300, 2'000);
  master.stall = draw.millis(8'000, 40'000);
  master.stop_grace = draw.millis(50, 3'000);
  master.rejoin_grace = draw.chance(1, 4) ? Millis(0) : draw.millis(100, 4'000);
  master.rows_per_chunk = draw.between(1u, 16u);
  master.batches_per_unit_max = draw.between(1u, 8u);
  master.unit_target = Micros(draw.between(1'000, 64'000));
  master.unbalanced_rounds = draw.between(1u, 4u);
  master.evaluate_chunk = draw.one_of({5u, 16u, 64u});
  master.evaluate_chunks_in_flight = draw.between(1u, 4u);
  master.evaluate_every_epochs = draw.one_of({0u, 1u, 1u});
  volunteer::CoreConfig& volunteer = options.volunteer;
  volunteer.retry_first = draw.millis(10, 200);
  volunteer.retry_longest = volunteer.retry_first * draw.one_of({1, 8, 32});
  volunteer.welcome_deadline = draw.millis(800, 3'000);
  volunteer.leave_grace = draw.millis(200, 4'000);
  volunteer.chunks_in_flight = draw.between(1u, 8u);
  options.volunteers = draw.between(1u, 8u);
  options.slowness_max = draw.between(1u, 8u);
  options.join_spread_ms = draw.between(10u, 1'000u);
  options.send_queue_bytes_max = draw.chance(1, 3)
                                     ? draw.between(std::size_t{32} << 10, std::size_t{128} << 10)
                                     : std::size_t{64} << 20;
  LinkShape& link = options.link;
  link.latency_min = Micros(draw.between(200, 10'000));
  link.latency_max = link.latency_min * draw.one_of({1, 4, 16});
  if (draw.chance(1, 3)) link.bytes_per_second = draw.between(60'000ul, 2'000'000ul);
  if (draw.chance(1, 6)) options.master_bytes_per_second = draw.between(400'000ul, 8'000'000ul);
}

}  // namespace

const char* name_of(Fault fault) {
  return kNames[static_cast<std::size_t>(fault)];
}

void draw(ClusterOptions& options, std::uint64_t seed) {
  Draw draw(seed);
  options.seed = seed;
  draw_model(options.model, draw);
  draw_settings(options, draw);
  FaultPlan& faults = options.faults;
  faults.until = draw.millis(2'000, 30'000);
  faults.lasting_most = draw.millis(200, 6'000);
  // Half of the faults exist; strong ones are as likely as weak ones.
  const auto draw_fault = [&](Millis& every) {
    if (draw.chance(1, 2)) every = draw.millis(400, 12'000);
  };
  for (Millis& every : std::span(faults.every).first(kFaultKinds - 1)) draw_fault(every);
  if (draw.chance(1, 3)) options.volunteer.work_bytes_max = draw.between(1ul, 16'384ul);
  if (draw.chance(1, 3)) options.volunteer_queue_bytes_max = draw.between(1ul, 16'384ul);
  options.master.lends_input = draw.chance(1, 3);
  options.volunteer.commit_parts_in_flight = draw.between(1u, 8u);
  options.commit_part_rows = draw.one_of({1u, 2u, 4u, 4u, 64u});
  draw_fault(faults[Fault::kBan]);
  // Such tiny parts take a round trip each, which bytes do not account for: a volunteer that holds
  // all must be able to commit in time.
  const auto turns = static_cast<std::int64_t>(
      kRowsMost / (options.commit_part_rows * options.volunteer.commit_parts_in_flight));
  const auto round_trips = std::chrono::duration_cast<Millis>(2 * options.link.latency_max * turns);
  options.master.stall = std::max(options.master.stall, 2 * round_trips);
}

std::vector<std::string> describe(const ClusterOptions& options) {
  std::vector<std::string> lines;
  const auto line = [&]<typename... Args>(fmt::format_string<Args...> format, Args&&... args) {
    lines.push_back(fmt::format(format, std::forward<Args>(args)...));
  };
  const ModelConfig& model = options.model;
  line("model: {} output shards, rounds of {} batches, lag {}{}", model.output_shards,
       model.round_batches, model.staleness,
       model.staleness_rise == 0
           ? ""
           : fmt::format(", one more every {} batches", model.staleness_rise));
  line("input layer: {}", options.master.lends_input ? "the volunteers'" : "the master's");
  line("volunteers: {}, the slowest up to {} times as slow", options.volunteers,
       options.slowness_max);
  if (options.strangers.are_there) {
    line("strangers: all but {}; {} lie, in one of {} messages", options.strangers.trusted,
         options.strangers.liars, options.strangers.one_in);
  }
  line("links: {} to {} us, {} B/s each, {} B/s at the master (0: any), queues of {} bytes",
       options.link.latency_min.count(), options.link.latency_max.count(),
       options.link.bytes_per_second, options.master_bytes_per_second,
       options.send_queue_bytes_max);
  const CoreConfig& master = options.master;
  line(
      "master: heartbeat {} ms, silence {} ms, stall {} ms, {} rows a chunk, units of {} batches "
      "at most, stop grace {} ms",
      master.heartbeat.count(), master.silence.count(), master.stall.count(), master.rows_per_chunk,
      master.batches_per_unit_max, master.stop_grace.count());
  const volunteer::CoreConfig& volunteer = options.volunteer;
  line(
      "volunteer: retries {} to {} ms, welcome within {} ms, leave within {} ms, {} chunks and {} "
      "parts of commits in flight, of {} rows",
      volunteer.retry_first.count(), volunteer.retry_longest.count(),
      volunteer.welcome_deadline.count(), volunteer.leave_grace.count(), volunteer.chunks_in_flight,
      volunteer.commit_parts_in_flight, options.commit_part_rows);
  line("faults until {} ms, lasting up to {} ms; mean time between two:",
       options.faults.until.count(), options.faults.lasting_most.count());
  for (std::size_t i = 0; i < kFaultKinds; ++i) {
    if (options.faults.every[i].count() == 0) continue;
    line("  {} {} ms", kNames[i], options.faults.every[i].count());
  }
  return lines;
}

}  // namespace gleaner::sim

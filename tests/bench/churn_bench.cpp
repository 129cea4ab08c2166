// Throughput while volunteers come and go, on simulated time with realistic links: rows `churn` of
// tests/bench/RESULTS.md. Training only costs time here, see
// tests/sim/workload/costed_workload.hpp.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "common/limits.hpp"
#include "common/result.hpp"
#include "tests/sim/cluster.hpp"
#include "tests/sim/workload/costed_workload.hpp"

namespace gleaner::sim {
namespace {

constexpr std::uint64_t kMegabit = 1'000'000 / 8;

struct Setting {
  std::uint32_t volunteers = 8;
  std::uint64_t link_mbit = 1'000;
  std::uint64_t master_mbit = 1'000;
};

struct Bench {
  CostModel cost;
  std::uint32_t shards_a_volunteer = 2;
  double seconds = 120;  // of simulated time, when calm
  std::uint64_t seed = 1;
  bool is_calm = false;        // nobody is killed
  bool are_strangers = false;  // all their work is done again by others
  // Volunteers of a relay, on a network of their own; 0: all go to the master.
  std::uint32_t volunteers_a_relay = 0;
};

ClusterOptions options_of(const Bench& bench, const Setting& setting, const Workload& workload) {
  ClusterOptions options;
  options.model = workload.model();
  options.seed = bench.seed;
  options.volunteers = setting.volunteers;
  options.slowness_max = 1;
  options.join_spread_ms = 1;
  // As the programs come: real deadlines, nothing shrunk.
  options.master = CoreConfig{};
  options.master.audit = AuditMode::kOff;
  options.master.min_volunteers = setting.volunteers;
  options.volunteer = volunteer::VolunteerCoreConfig{};
  options.link = {Micros(5'000), Micros(50'000), setting.link_mbit * kMegabit};
  options.has_steady_latency = true;
  options.master_bytes_per_second = setting.master_mbit * kMegabit;
  options.restart_after_most = Millis(2'000);
  options.is_checked = false;
  if (bench.volunteers_a_relay > 0) {
    options.relays.count = (setting.volunteers - 1) / bench.volunteers_a_relay + 1;
    options.relays.link.bytes_per_second = options.relays.bytes_per_second = 1'000 * kMegabit;
    options.relays.takes_all = true;
    // A volunteer that comes before its relay reaches the master tries again; others die meanwhile.
    options.master.min_volunteers = setting.volunteers * 3 / 4;
  }
  if (bench.are_strangers) {
    options.strangers.are_there = true;
    options.master.audit = AuditMode::kAll;
  }
  return options;
}

double per_second(const ClusterResult& result, std::uint32_t examples) {
  const double seconds = static_cast<double>(result.duration.count()) / 1e3;
  return static_cast<double>(result.applied.size()) * examples / seconds;
}

ClusterResult run(const Bench& bench, const Setting& setting, std::uint32_t batches, Millis life,
                  bool is_one_kill) {
  CostModel cost = bench.cost;
  cost.batches = batches;
  cost.shards = std::clamp(setting.volunteers * bench.shards_a_volunteer, 16u, kOutputShardsMax);
  CostedWorkload workload(cost);
  ClusterOptions options = options_of(bench, setting, workload);
  if (is_one_kill) {
    options.kill_one_at = life;
    options.restart_after_most = Millis(100'000'000);  // not in this run
  } else if (life.count() > 0) {
    options.faults.until = Millis(100'000'000);
    options.faults[Fault::kVolunteerKill] = life / setting.volunteers;
  }
  ClusterResult result = run_cluster(options, workload);
  for (const std::string& violation : result.violations) fmt::print("{}\n", violation);
  return result;
}

// How long after the kill batches come as steadily as they do later, with one volunteer fewer: the
// end of the last gap that is longer than any from `kSteady` after it on.
double effect_seconds(const std::vector<Instant>& applied, Instant at) {
  constexpr Millis kSteady{15'000};
  Micros longest{0};
  for (std::size_t i = 1; i < applied.size(); ++i) {
    if (applied[i - 1] > at + kSteady) longest = std::max(longest, applied[i] - applied[i - 1]);
  }
  Instant end = at;
  for (std::size_t i = 1; i < applied.size(); ++i) {
    const bool is_after = applied[i] > at && applied[i - 1] <= at + kSteady;
    if (is_after && applied[i] - applied[i - 1] > longest) end = applied[i];
  }
  return static_cast<double>((end - at).count()) / 1e6;
}

void measure(const Bench& bench, const Setting& setting) {
  const std::uint32_t round = bench.cost.round_batches;
  const std::uint32_t trial = 20 * round;
  const double rate = per_second(run(bench, setting, trial, {}, false), 1);
  const auto rounds = static_cast<std::uint32_t>(rate * bench.seconds / round) + 1;
  const std::uint32_t batches = rounds * round;
  const ClusterResult calm = run(bench, setting, batches, {}, false);
  const double calm_rate = per_second(calm, bench.cost.batch_examples);
  if (bench.is_calm) {
    fmt::print("| {} | {} Mbit/s | {} Mbit/s | {:.0f} | | | |\n", setting.volunteers,
               setting.link_mbit, setting.master_mbit, calm_rate);
    std::fflush(stdout);
    return;
  }
  const auto share = [&](Millis life) {
    return 100 * per_second(run(bench, setting, batches, life, false), bench.cost.batch_examples) /
           calm_rate;
  };
  const Millis at(static_cast<std::int64_t>(bench.seconds * 400));
  const ClusterResult killed = run(bench, setting, batches, at, true);
  fmt::print("| {} | {} Mbit/s | {} Mbit/s | {:.0f} | {:.0f} % | {:.0f} % | {:.2f} s |\n",
             setting.volunteers, setting.link_mbit, setting.master_mbit, calm_rate,
             share(Millis(60'000)), share(Millis(10'000)),
             effect_seconds(killed.applied, Instant(at)));
  std::fflush(stdout);
}

// Lines `seconds,machines` after a heading, ascending; `speed` of these seconds pass in one. An
// error names the line that is none.
Result<std::vector<Presence>> read_presence(const std::string& path, double speed, bool is_told) {
  std::ifstream file(path);
  std::string line;
  std::vector<Presence> steps;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    if (number == 1) continue;
    unsigned long long seconds = 0;
    unsigned machines = 0;
    char rest = 0;
    const bool is_step = std::sscanf(line.c_str(), "%llu,%u%c", &seconds, &machines, &rest) == 2;
    const Millis from(static_cast<std::int64_t>(static_cast<double>(seconds) * 1e3 / speed));
    if (!is_step || (!steps.empty() && from < steps.back().from)) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("{}:{}: expected `seconds,machines`, later than the line before, "
                               "found `{}`",
                               path, number, line)};
    }
    steps.push_back({from, machines, is_told});
  }
  if (steps.size() < 2) return Error{ErrorCode::kCorrupt, path + ": no trace of two lines or more"};
  return steps;
}

// Examples that the machines of the trace could have trained up to `end`. `speeds`: of each number
// of machines when calm.
double capacity(const std::vector<Presence>& trace, Instant end,
                const std::map<std::uint32_t, double>& speeds) {
  double examples = 0;
  for (std::size_t i = 0; i < trace.size() && Instant(trace[i].from) < end; ++i) {
    const Instant until = i + 1 < trace.size() ? std::min(end, Instant(trace[i + 1].from)) : end;
    const double seconds = static_cast<double>((until - Instant(trace[i].from)).count()) / 1e6;
    examples += seconds * (trace[i].volunteers == 0 ? 0 : speeds.at(trace[i].volunteers));
  }
  return examples;
}

// A trainer that restarts from checkpoints, in the trace's own time.
struct Restarting {
  double save_every_s = 600;
  double restart_s = 120;  // after every change, to start its processes, meet and load
};

// The share of the machines' time that such a trainer uses: whatever comes or goes stops it, and
// what it trained since its last checkpoint is lost when a machine is. Saving costs it nothing.
double restarting_share(const std::vector<Presence>& trace, double speed, const Restarting& rival) {
  double there = 0;
  double useful = 0;
  double unsaved = 0;      // of the useful work
  double since_saved = 0;  // seconds
  double restarting = rival.restart_s;
  for (std::size_t i = 0; i + 1 < trace.size(); ++i) {
    const double machines = trace[i].volunteers;
    double seconds = static_cast<double>((trace[i + 1].from - trace[i].from).count()) / 1e3 * speed;
    there += machines * seconds;
    const double waited = std::min(seconds, restarting);
    restarting -= waited;
    seconds -= waited;
    useful += machines * seconds;
    if (since_saved + seconds >= rival.save_every_s) {
      since_saved = std::fmod(since_saved + seconds, rival.save_every_s);
      unsaved = machines * std::min(since_saved, seconds);
    } else {
      since_saved += seconds;
      unsaved += machines * seconds;
    }
    const bool is_loss = trace[i + 1].volunteers < trace[i].volunteers;
    if (is_loss) useful -= unsaved;
    unsaved = since_saved = 0;  // who joins is waited for until a checkpoint is there
    restarting = rival.restart_s;
  }
  return useful / there;
}

// Examples per second of a calm run, without its first two rounds, when shards are loaded.
double steady_speed(const Bench& bench, const Setting& setting) {
  const std::uint32_t round = bench.cost.round_batches;
  const std::vector<Instant> applied = run(bench, setting, 20 * round, {}, false).applied;
  const auto batches = static_cast<double>(applied.size() - 2 * round);
  const auto time = applied.back() - applied[2 * round - 1];
  return batches * bench.cost.batch_examples / (static_cast<double>(time.count()) / 1e6);
}

// A run as long as the trace, against what a calm one of as many machines trains.
int follow(const Bench& bench, Setting setting, const std::vector<Presence>& trace,
           double restarting) {
  std::map<std::uint32_t, double> speeds;
  for (const Presence& step : trace) {
    if (step.volunteers == 0 || speeds.contains(step.volunteers)) continue;
    setting.volunteers = step.volunteers;
    speeds[step.volunteers] = steady_speed(bench, setting);
  }
  const Instant end(trace.back().from);
  setting.volunteers = speeds.rbegin()->first;
  CostModel cost = bench.cost;
  cost.shards = std::clamp(setting.volunteers * bench.shards_a_volunteer, 16u, kOutputShardsMax);
  // More than can be trained, so that the trace ends the run.
  const double batches = capacity(trace, end, speeds) / cost.batch_examples;
  cost.batches =
      (static_cast<std::uint32_t>(batches) / cost.round_batches + 2) * cost.round_batches;
  CostedWorkload workload(cost);
  ClusterOptions options = options_of(bench, setting, workload);
  options.master.min_volunteers = 1;
  options.presence = trace;
  options.heal_within = std::chrono::duration_cast<Millis>(end.time_since_epoch());
  const ClusterResult result = run_cluster(options, workload);
  const double trained = static_cast<double>(result.applied.size()) * cost.batch_examples;
  const double share = trained / capacity(trace, end, speeds);
  fmt::print(
      "{} volunteers at most, {} Mbit/s, {:.0f} s: {:.0f} examples, {:.3f} of what those "
      "there train when calm; {:.3f} of the work was done twice\n"
      "restarting from checkpoints would train {:.3f} of it: {:.2f} times as long\n",
      setting.volunteers, setting.link_mbit,
      static_cast<double>(end.time_since_epoch().count()) / 1e6, trained, share,
      workload.trained_examples() / trained - 1, restarting, share / restarting);
  return result.applied.empty() ? 1 : 0;
}

int run(int argc, char** argv) {
  CLI::App app("Throughput while volunteers are killed and come again, on simulated time.",
               "churn_bench");
  app.footer(
      "Examples:\n"
      "  churn_bench                    the table\n"
      "  churn_bench --volunteers 8     one size\n"
      "  churn_bench --volunteers 64 --master-mbit 10000\n"
      "  churn_bench --volunteers 64 --volunteers-a-relay 8 --link-mbit 1000\n"
      "  churn_bench --volunteers 64 --wide --calm --round-batches 256\n"
      "  churn_bench --trace p3-11h.csv --speed 60   machines as they came and went\n"
      "  churn_bench --tiny             a few seconds, so that it cannot rot");
  Bench bench;
  bool is_tiny = false;
  std::vector<std::uint32_t> volunteers = {8, 64};
  std::uint64_t master_mbit = 1'000;
  std::vector<std::uint64_t> links = {100, 1'000};
  app.add_option("--volunteers", volunteers, "how many")->capture_default_str();
  app.add_option("--master-mbit", master_mbit, "the master's link")->capture_default_str();
  app.add_option("--seconds", bench.seconds, "simulated time of a calm run")->capture_default_str();
  app.add_option("--example-us", bench.cost.example_us, "processor time of an example")
      ->capture_default_str();
  app.add_option("--lag", bench.cost.staleness, "batches")->capture_default_str();
  app.add_option("--round-batches", bench.cost.round_batches, "batches")->capture_default_str();
  app.add_option("--shards", bench.shards_a_volunteer, "shards a volunteer")->capture_default_str();
  app.add_option("--seed", bench.seed, "of latencies and kills")->capture_default_str();
  app.add_option("--volunteers-a-relay", bench.volunteers_a_relay,
                 "relays at 1 Gbit/s between them and the master; 0: none");
  app.add_option("--link-mbit", links, "the volunteers' links, or their relays'")
      ->capture_default_str();
  app.add_flag_callback(
      "--wide", [&bench] { bench.cost.make_wide(); },
      "no hidden layer; the volunteers have the examples");
  app.add_flag("--calm", bench.is_calm, "nobody is killed");
  app.add_flag("--strangers", bench.are_strangers, "all work is done again by others");
  std::string trace;
  double speed = 1;
  bool is_silent = false;
  Restarting rival;
  app.add_option("--trace", trace, "lines `seconds,machines`: from when on how many are there");
  app.add_option("--speed", speed, "how many of the trace's seconds pass in one")
      ->check(CLI::PositiveNumber);
  app.add_flag("--silent", is_silent, "machines go without their kernels' word");
  app.add_option("--save-every-s", rival.save_every_s,
                 "of a trainer that restarts from checkpoints")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--restart-s", rival.restart_s, "of a trainer that restarts from checkpoints")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_flag("--tiny", is_tiny, "for ctest");
  CLI11_PARSE(app, argc, argv);
  if (!trace.empty()) {
    const auto steps = read_presence(trace, speed, !is_silent);
    if (!steps) {
      fmt::print(stderr, "{}\n", steps.error().message);
      return 3;
    }
    return follow(bench, {0, 1'000, master_mbit}, *steps, restarting_share(*steps, speed, rival));
  }
  if (is_tiny) {
    volunteers = {3};
    links = {100};
    bench.seconds = 5;
  }
  fmt::print(
      "batches of {}, rounds of {}, lag {}, {} us an example\n\n"
      "| volunteers | their links | master's link | calm, examples/s | life 60 s | life 10 s | "
      "effect of a kill |\n|---|---|---|---|---|---|---|\n",
      bench.cost.batch_examples, bench.cost.round_batches, bench.cost.staleness,
      bench.cost.example_us);
  for (const std::uint32_t count : volunteers) {
    for (const std::uint64_t link : links) measure(bench, {count, link, master_mbit});
  }
  return 0;
}

}  // namespace
}  // namespace gleaner::sim

int main(int argc, char** argv) {
  return gleaner::sim::run(argc, argv);
}

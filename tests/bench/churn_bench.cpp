// Throughput while volunteers come and go, on simulated time with realistic links: see the table in
// tests/sim/README.md. Training only costs time here, see tests/sim/workload/costed_workload.hpp.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

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
  bool are_strangers = false;  // all their work is done again by others
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
  options.master.min_volunteers = setting.volunteers;
  options.volunteer = volunteer::CoreConfig{};
  options.link = {Micros(5'000), Micros(50'000), setting.link_mbit * kMegabit};
  options.has_steady_latency = true;
  options.master_bytes_per_second = setting.master_mbit * kMegabit;
  options.restart_after_most = Millis(2'000);
  options.is_checked = false;
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
  cost.shards = std::max(16u, setting.volunteers * bench.shards_a_volunteer);
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

int run(int argc, char** argv) {
  CLI::App app("Throughput while volunteers are killed and come again, on simulated time.",
               "churn_bench");
  app.footer(
      "Examples:\n"
      "  churn_bench                    the table of tests/sim/README.md\n"
      "  churn_bench --volunteers 8     one size\n"
      "  churn_bench --volunteers 64 --master-mbit 10000\n"
      "  churn_bench --tiny             a few seconds, so that it cannot rot");
  Bench bench;
  bool is_tiny = false;
  std::vector<std::uint32_t> volunteers = {8, 64};
  std::uint64_t master_mbit = 1'000;
  app.add_option("--volunteers", volunteers, "how many")->capture_default_str();
  app.add_option("--master-mbit", master_mbit, "the master's link")->capture_default_str();
  app.add_option("--seconds", bench.seconds, "simulated time of a calm run")->capture_default_str();
  app.add_option("--example-us", bench.cost.example_us, "processor time of an example")
      ->capture_default_str();
  app.add_option("--lag", bench.cost.staleness, "batches")->capture_default_str();
  app.add_option("--round-batches", bench.cost.round_batches, "batches")->capture_default_str();
  app.add_option("--shards", bench.shards_a_volunteer, "shards a volunteer")->capture_default_str();
  app.add_option("--seed", bench.seed, "of latencies and kills")->capture_default_str();
  app.add_flag("--strangers", bench.are_strangers, "all work is done again by others");
  app.add_flag("--tiny", is_tiny, "for ctest");
  CLI11_PARSE(app, argc, argv);
  if (is_tiny) {
    volunteers = {3};
    bench.seconds = 5;
  }
  fmt::print(
      "batches of {}, rounds of {}, lag {}, {} us an example\n\n"
      "| volunteers | their links | master's link | calm, examples/s | life 60 s | life 10 s | "
      "effect of a kill |\n|---|---|---|---|---|---|---|\n",
      bench.cost.batch_examples, bench.cost.round_batches, bench.cost.staleness,
      bench.cost.example_us);
  for (const std::uint32_t count : volunteers) {
    measure(bench, {count, 100, master_mbit});
    if (!is_tiny) measure(bench, {count, 1'000, master_mbit});
  }
  return 0;
}

}  // namespace
}  // namespace gleaner::sim

int main(int argc, char** argv) {
  return gleaner::sim::run(argc, argv);
}

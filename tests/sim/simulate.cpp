// gleaner-simulate: replays one seed of the simulation, or sweeps over many.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "common/time.hpp"
#include "tests/sim/small_world.hpp"

namespace gleaner::sim {
namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  gleaner-simulate --seed 17             what was drawn, what happened, the digest\n"
    "  gleaner-simulate --seed 17 --trace     every event on the way\n"
    "  gleaner-simulate --seeds 1..1000       a sweep: violations, and a table of what was "
    "reached\n\n"
    "Exit status: 0 every run kept its promises, 1 one did not, 2 usage.";

// A kind of storm, drawn from a seed.
struct Kind {
  const char* flag = "";
  ClusterOptions (SmallWorld::*draw)(std::uint64_t) = &SmallWorld::storm;
};

struct Range {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

void print_line(Instant when, std::string_view who, std::string_view what) {
  fmt::print("{:>12.6f} {:<7} {}\n", static_cast<double>(when.time_since_epoch().count()) / 1e6,
             who, what);
}

// Prints the promises that broke. An honest volunteer that is banned is sent away, which is one of
// the violations.
void print_violations(const Kind& kind, std::uint64_t seed, const ClusterResult& result) {
  for (const std::string& violation : result.violations) {
    fmt::print("seed {}: {}\n", seed, violation);
  }
  fmt::print("replay it with: gleaner-simulate {}--seed {} --trace\n", kind.flag, seed);
}

void print_marks(const std::map<std::string, std::uint64_t>& marks) {
  for (const auto& [mark, times] : marks) fmt::print("  {:<36} {:>10}\n", mark, times);
}

ExitCode replay(SmallWorld& world, std::uint64_t seed, const Kind& kind, bool is_traced) {
  ClusterOptions options = (world.*kind.draw)(seed);
  if (is_traced) options.trace = &print_line;
  fmt::print("seed {}\n", seed);
  for (const std::string& line : describe(options)) fmt::print("  {}\n", line);
  const ClusterResult result = world.run(options);
  fmt::print("what happened:\n");
  print_marks(result.happened);
  fmt::print(
      "{} events in {:.3f} s of simulated time, {} writes, {} checkpoints; event digest "
      "{:016x}\n",
      result.events, static_cast<double>(result.duration.count()) / 1e3, result.writes,
      result.reached.digests.size(), result.event_digest);
  if (result.violations.empty()) {
    fmt::print("no promise was broken; the last checkpoint is {}\n",
               result.reached.digests.rbegin()->second);
    return ExitCode::kOk;
  }
  print_violations(kind, seed, result);
  return ExitCode::kFailure;
}

ExitCode sweep(SmallWorld& world, Range range, const Kind& kind) {
  std::map<std::string, std::uint64_t> marks;
  std::uint64_t failed = 0;
  std::uint64_t events = 0;
  Instant shown = monotonic_now();
  for (std::uint64_t seed = range.first; seed <= range.last; ++seed) {
    const ClusterResult result = world.run((world.*kind.draw)(seed));
    for (const auto& [mark, times] : result.happened) marks[mark] += times;
    events += result.events;
    if (!result.violations.empty()) {
      ++failed;
      print_violations(kind, seed, result);
    }
    if (const Instant now = monotonic_now(); now - shown > Millis(5'000)) {
      shown = now;
      fmt::print(stderr, "{} of {} seeds, {} failed\n", seed - range.first + 1,
                 range.last - range.first + 1, failed);
    }
  }
  std::size_t faults = 0;
  for (const auto& [mark, times] : marks) faults += mark.starts_with("fault.") ? 1 : 0;
  fmt::print("what was reached, times:\n");
  print_marks(marks);
  fmt::print("{} seeds, {} failed; {} of {} kinds of fault, {} other marks; {} events\n",
             range.last - range.first + 1, failed, faults, kFaultKinds, marks.size() - faults,
             events);
  return failed == 0 ? ExitCode::kOk : ExitCode::kFailure;
}

bool parse_range(const std::string& text, Range& range) {
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) return false;
  return CLI::detail::lexical_cast(text.substr(0, dots), range.first) &&
         CLI::detail::lexical_cast(text.substr(dots + 2), range.last) && range.first <= range.last;
}

int run(int argc, char** argv) {
  CLI::App app(
      "Runs a whole cluster in one process on simulated time, with faults drawn from a seed, and "
      "checks every promise.",
      "gleaner-simulate");
  app.footer(kFooter);
  std::uint64_t seed = 1;
  std::string seeds;
  bool is_traced = false;
  bool are_strangers = false;
  bool is_adaptive = false;
  auto* one = app.add_option("--seed", seed, "the seed to replay")->capture_default_str();
  app.add_option("--seeds", seeds, "A..B: sweep over these seeds")->excludes(one);
  app.add_flag("--trace", is_traced, "print every event of the one seed");
  app.add_flag("--strangers", are_strangers,
               "nobody vouches for the volunteers, some lie, and all are audited");
  app.add_flag("--adaptive", is_adaptive,
               "as --strangers, and a quarter of their rounds is audited, drawn by lot");
  try {
    app.parse(argc, argv);
    Range range;
    if (!seeds.empty() && !parse_range(seeds, range)) {
      throw CLI::ValidationError("--seeds", "expects A..B with A <= B, as in 1..1000");
    }
    SmallWorld world;
    Kind kind;
    if (are_strangers) kind = {"--strangers ", &SmallWorld::storm_of_strangers};
    if (is_adaptive) kind = {"--adaptive ", &SmallWorld::adaptive_storm};
    return static_cast<int>(seeds.empty() ? replay(world, seed, kind, is_traced)
                                          : sweep(world, range, kind));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::kUsage);
  } catch (const std::exception& error) {
    fmt::print(stderr, "gleaner-simulate: {}\n", error.what());
    return static_cast<int>(ExitCode::kFailure);
  }
}

}  // namespace
}  // namespace gleaner::sim

int main(int argc, char** argv) {
  return gleaner::sim::run(argc, argv);
}

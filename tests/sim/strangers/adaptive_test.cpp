// Adaptive audits: whoever is caught, everything that it has done is undone.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <string>

#include "tests/sim/cluster.hpp"
#include "tests/sim/small_world.hpp"

namespace gleaner::sim {
namespace {

// Among `volunteers`, three in ten lie in a part of their rounds.
ClusterOptions some_liars(SmallWorld& world, std::uint64_t seed, std::uint32_t volunteers) {
  ClusterOptions options;
  options.model = world.model();
  options.model.output_shards = volunteers;
  options.model.epochs = 4;
  options.expected = &world.calm(options.model);
  options.seed = seed;
  options.volunteers = volunteers;
  options.slowness_max = 1;
  options.strangers.are_there = true;
  options.strangers.liars = volunteers * 3 / 10;
  SmallWorld::audit_by_lot(options);
  return options;
}

}  // namespace

TEST_CASE("adaptive: when all lies were caught the model is the honest one", "[sim]") {
  SmallWorld world;
  const auto [first, seeds] = seeds_to_run(40);
  std::map<std::string, std::uint64_t> reached;
  std::uint64_t liars = 0;
  std::uint64_t caught = 0;
  std::uint64_t honest_models = 0;
  double missed = 0;  // as many as would be if nothing but the lot of each round decided
  double variance = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    const ClusterOptions options = some_liars(world, seed, 16);
    const ClusterResult result = world.run(options);
    INFO("seed " << seed);
    for (const std::string& violation : result.violations) FAIL_CHECK(violation);
    REQUIRE(result.finished);
    // Nobody else is convicted.
    REQUIRE(std::ranges::includes(result.liars, result.convicted));
    for (const auto& [mark, times] : result.happened) reached[mark] += times;
    const auto& digests = result.reached.digests;
    const bool is_honest = digests.rbegin()->second == options.expected->digests.rbegin()->second;
    honest_models += is_honest;
    if (result.convicted == result.liars) REQUIRE(is_honest);
    for (const auto& [name, rounds] : result.lied_in) {
      ++liars;
      caught += result.convicted.contains(name);
      if (rounds.empty()) continue;
      const double slips = std::pow(1 - options.master.audit_share, rounds.size());
      missed += slips;
      variance += slips * (1 - slips);
    }
  }
  INFO(seeds << " seeds: " << liars << " liars, " << caught << " caught, " << honest_models
             << " honest models; by the lot alone " << missed << " would be missed");
  if (seeds < 40) return;
  CHECK(liars > seeds);
  // Newcomers and those who audit others are caught more often; nobody less often.
  CHECK(static_cast<double>(liars - caught) < missed + 2.6 * std::sqrt(variance));
  for (const char* mark : {"branch.went_back", "notice.convicted"}) {
    INFO(mark);
    CHECK(reached[mark] > 0);
  }
}

// Each of these seeds has once convicted somebody honest, or stopped the run.
TEST_CASE("adaptive: runs that a promise was once broken in", "[sim]") {
  SmallWorld world;
  for (const std::uint64_t seed : {20025, 20046, 31359}) {
    const ClusterResult result = world.run(some_liars(world, seed, 16));
    INFO("seed " << seed);
    for (const std::string& violation : result.violations) FAIL_CHECK(violation);
    REQUIRE(result.finished);
    REQUIRE(std::ranges::includes(result.liars, result.convicted));
  }
}

// Each of these seeds has once stopped the run, held it up, or kept work of a banned volunteer.
TEST_CASE("adaptive: storms that a promise was once broken in", "[sim]") {
  SmallWorld world;
  for (const std::uint64_t seed : {749, 767, 886, 3349}) {
    const ClusterResult result = world.run(world.adaptive_storm(seed));
    INFO("seed " << seed);
    for (const std::string& violation : result.violations) FAIL_CHECK(violation);
    REQUIRE(result.finished);
  }
}

TEST_CASE("adaptive: in storms too, and the run goes back only once for each liar and ban",
          "[sim]") {
  SmallWorld world;
  const auto [first, seeds] = seeds_to_run(200);
  std::map<std::string, std::uint64_t> reached;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    const ClusterResult result = world.run(world.adaptive_storm(seed));
    INFO("seed " << seed);
    for (const std::string& violation : result.violations) FAIL_CHECK(violation);
    REQUIRE(result.finished);
    REQUIRE(std::ranges::includes(result.liars, result.convicted));
    const auto went_back = result.happened.find("branch.went_back");
    const std::size_t reasons = result.convicted.size() + result.banned.size();
    if (went_back != result.happened.end()) REQUIRE(went_back->second <= reasons);
    for (const auto& [mark, times] : result.happened) reached[mark] += times;
  }
  if (seeds < 200) return;  // few storms last long enough
  CHECK(reached["branch.went_back"] > 0);
}

}  // namespace gleaner::sim

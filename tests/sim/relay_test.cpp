// Runs through relays: the same weather, and relays that die.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <string>

#include "tests/sim/small_world.hpp"

namespace gleaner::sim {
namespace {

ClusterResult run(SmallWorld& world, const ClusterOptions& options) {
  ClusterResult result = world.run(options);
  INFO("seed " << options.seed);
  for (const std::string& violation : result.violations) FAIL_CHECK(violation);
  REQUIRE(result.finished);
  return result;
}

std::uint64_t setting_of(const char* name, std::uint64_t fallback) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return text != nullptr ? std::strtoull(text, nullptr, 10) : fallback;
}

}  // namespace

TEST_CASE("relay: a calm run through relays trains the same model", "[sim]") {
  SmallWorld world;
  for (const std::uint32_t relays : {1u, 2u}) {
    ClusterOptions options;
    options.model = world.model();
    options.expected = &world.calm(options.model);
    options.volunteers = 6;
    options.relays.count = relays;
    const ClusterResult result = run(world, options);
    REQUIRE(result.reached.digests == options.expected->digests);
    REQUIRE(result.happened.at("relay.sum_of_several") > 0);
    world.make_wide(options);
    options.expected = &world.calm(options.model);
    REQUIRE(run(world, options).reached.digests == options.expected->digests);
  }
}

TEST_CASE("relay: storms in which relays die change no bit", "[sim]") {
  SmallWorld world;
  const std::uint64_t first = setting_of("GLEANER_SEED", 1);
  const std::uint64_t count = setting_of("GLEANER_SEEDS", 200);
  std::map<std::string, std::uint64_t> reached;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    ClusterOptions options = world.storm(seed);
    options.relays.count = 1 + seed % 2;
    options.relays.takes_all = seed % 5 == 0;
    options.relays.life = Millis(seed % 3 == 0 ? 300 : 2'000);
    for (const auto& [mark, times] : run(world, options).happened) reached[mark] += times;
  }
  if (count < 200) return;
  for (const char* mark : {"relay.killed", "relay.sum_of_several", "relay.gone"}) {
    INFO(mark);
    REQUIRE(reached[mark] > 0);
  }
}

}  // namespace gleaner::sim

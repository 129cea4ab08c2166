// Runs through relays: the same weather, and relays that die.
#include <algorithm>
#include <catch2/catch.hpp>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "tests/sim/small_world.hpp"
#include "tests/support/relay_lies.hpp"

namespace gleaner::sim {
namespace {

ClusterResult run(SmallWorld& world, const ClusterOptions& options) {
  ClusterResult result = world.run(options);
  INFO("seed " << options.seed);
  for (const std::string& violation : result.violations) FAIL_CHECK(violation);
  REQUIRE(result.finished);
  return result;
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
  const auto [first, count] = seeds_to_run(200);
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

// Eight strangers, of whom two go to the master; a relay that is a stranger too carries half of the
// others, and an honest one the rest.
ClusterOptions relays_of_strangers(SmallWorld& world) {
  ClusterOptions options;
  options.model = world.model();
  options.expected = &world.calm(options.model);
  options.volunteers = 8;
  options.strangers.are_there = true;
  options.relays.count = 2;
  options.relays.are_strangers = true;
  options.master.audit = AuditMode::kAll;
  return options;
}

TEST_CASE("relay: one of strangers carries audited work, and sums none of it", "[sim]") {
  SmallWorld world;
  ClusterOptions options = relays_of_strangers(world);
  const ClusterResult result = run(world, options);
  REQUIRE(result.reached.digests == options.expected->digests);
  REQUIRE(result.convicted.empty());
  REQUIRE_FALSE(result.happened.contains("relay.sum_of_several"));
}

TEST_CASE("relay: whatever one of strangers tells, nobody elsewhere is blamed", "[sim]") {
  SmallWorld world;
  for (const auto& [name, lie] : relay_lies({})) {
    std::uint64_t told = 0;
    std::set<std::string> blamed;
    const auto is_shown = [&] { return told > 0 && (!lie.is_of_work || !blamed.empty()); };
    for (std::uint64_t seed = 1; seed <= 4 || (!is_shown() && seed <= 20); ++seed) {
      ClusterOptions options = relays_of_strangers(world);
      options.seed = seed;
      options.relays.lie = name;
      if (seed % 2 == 0) {
        world.make_wide(options);
        options.expected = &world.calm(options.model);
      }
      INFO(name << " with seed " << seed);
      const ClusterResult result = run(world, options);
      REQUIRE(result.reached.digests == options.expected->digests);
      told += result.relayed_lies;
      for (const std::string& who : result.convicted) {
        REQUIRE((who == "v1" || who == "v3" || who == "v5" || who == "v7"));
        blamed.insert(who);
      }
    }
    INFO(name);
    REQUIRE(told > 0);
    REQUIRE(blamed.empty() != lie.is_of_work);
  }
}

TEST_CASE("relay: a trusted one that adds wrongly is found before its sums count", "[sim]") {
  SmallWorld world;
  for (const auto& [name, lie] : lies_in_sums()) {
    std::uint64_t told = 0;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      ClusterOptions options;
      options.model = world.model();
      options.expected = &world.calm(options.model);
      options.seed = seed;
      options.volunteers = 8;
      options.relays.count = 2;
      options.relays.lie = name;
      INFO(name << " with seed " << seed);
      const ClusterResult result = run(world, options);
      REQUIRE(result.reached.digests == options.expected->digests);
      told += result.relayed_lies;
      // A sum that came in vain is not looked at.
      REQUIRE(result.convicted.size() <= 1);
      if (!result.convicted.empty()) REQUIRE(result.convicted.begin()->starts_with("relay "));
      if (result.relayed_lies > 1) REQUIRE_FALSE(result.convicted.empty());
    }
    INFO(name);
    REQUIRE(told > 0);
  }
}

TEST_CASE("relay: in storms one of strangers changes no checkpoint", "[sim]") {
  SmallWorld world;
  const auto [first, count] = seeds_to_run(60);
  const auto all = relay_lies({});
  std::map<std::string, std::uint64_t> reached;
  std::uint64_t told = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    ClusterOptions options = world.storm_of_strangers(seed);
    options.volunteers = std::max(options.volunteers, 8u);
    options.strangers.liars = 0;
    options.relays.count = 2;
    options.relays.are_strangers = true;
    options.relays.life = Millis(seed % 2 == 0 ? 0 : 2'000);
    options.relays.lie = std::next(all.begin(), seed % all.size())->first;
    const ClusterResult result = run(world, options);
    for (const auto& [mark, times] : result.happened) reached[mark] += times;
    told += result.relayed_lies;
    for (std::uint32_t index = 0; index < options.volunteers; ++index) {
      const std::string who = "v" + std::to_string(index + 1);
      const bool is_behind = index % 2 == 0;
      INFO(who << " with seed " << seed);
      REQUIRE((is_behind || !result.convicted.contains(who)));
    }
  }
  if (count < 60) return;
  REQUIRE(told > count);
  for (const char* mark : {"notice.convicted", "relay.killed", "again.false_work"}) {
    INFO(mark);
    REQUIRE(reached[mark] > 0);
  }
}

}  // namespace gleaner::sim

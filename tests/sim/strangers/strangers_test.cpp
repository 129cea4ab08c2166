// Strangers: whatever they tell, every checkpoint is the honest one, and nobody honest is banned.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>

#include "tests/sim/cluster.hpp"
#include "tests/sim/small_world.hpp"
#include "tests/support/lies.hpp"

namespace gleaner::sim {
namespace {

// Runs it; fails where a promise is broken.
ClusterResult keep_promises(SmallWorld& world, const ClusterOptions& options) {
  ClusterResult result = world.run(options);
  INFO("replay it with: gleaner-simulate --strangers --seed " << options.seed);
  for (const std::string& violation : result.violations) FAIL_CHECK(violation);
  REQUIRE(result.finished);
  INFO("falsely convicted");
  REQUIRE(std::includes(result.liars.begin(), result.liars.end(), result.convicted.begin(),
                        result.convicted.end()));
  return result;
}

ClusterOptions three_strangers(SmallWorld& world) {
  ClusterOptions options;
  options.model = world.model();
  options.expected = &world.calm(options.model);
  options.strangers.are_there = true;
  options.master.audit = AuditMode::kAll;
  return options;
}

}  // namespace

TEST_CASE("strangers: honest ones give the honest model, and nobody is banned", "[sim]") {
  SmallWorld world;
  for (std::uint32_t volunteers = 1; volunteers <= 6; ++volunteers) {
    ClusterOptions options = three_strangers(world);
    options.volunteers = volunteers;
    const ClusterResult result = keep_promises(world, options);
    REQUIRE(result.convicted.empty());
    // One alone is audited by the master itself.
    REQUIRE(result.happened.contains("notice.referee") == (volunteers == 1));
  }
}

TEST_CASE("strangers: every kind of lie is found, whoever tells it", "[sim]") {
  SmallWorld world;
  for (const auto& [name, lie] : lies()) {
    std::size_t told = 0;
    // Some lies can only be told of units of several batches.
    for (std::uint64_t seed = 1; seed <= 4 || (told == 0 && seed <= 40); ++seed) {
      ClusterOptions options = three_strangers(world);
      options.seed = seed;
      options.strangers.liars = 1;
      options.strangers.lie = name;
      options.strangers.one_in = seed == 1 ? 1 : 5;
      INFO(name << " with seed " << seed);
      const ClusterResult result = keep_promises(world, options);
      told += result.liars.size();
      // Nothing came of a commit that never came whole, and who sent it had its time.
      if (name == "parts-more") continue;
      // Answers that no honest arithmetic gives are refused at once; the rest are compared.
      std::set<std::string> found = result.convicted;
      found.insert(result.sent_away.begin(), result.sent_away.end());
      REQUIRE(found == result.liars);
    }
    INFO(name);
    REQUIRE(told > 0);
  }
}

// Each of these seeds has once broken a promise.
TEST_CASE("strangers: storms that a promise was once broken in", "[sim]") {
  SmallWorld world;
  for (const std::uint64_t seed : {81, 337, 615, 988, 1508, 1599, 2242, 6552, 6960, 8151, 8389,
                                   8968, 13590, 14233, 14950, 15919, 63558, 68215}) {
    keep_promises(world, world.storm_of_strangers(seed));
  }
}

TEST_CASE("strangers: one that comes again with other keys ends by the suspension of its invite",
          "[sim]") {
  SmallWorld world;
  ClusterOptions options = three_strangers(world);
  options.volunteers = 5;
  options.strangers.liars = 1;
  options.strangers.lie = "gradient";
  options.strangers.come_again = true;
  options.restart_after_most = Millis(10);
  std::map<std::string, std::uint64_t> reached;
  for (options.seed = 1; options.seed <= 20; ++options.seed) {
    const ClusterResult result = keep_promises(world, options);
    for (const auto& [mark, times] : result.happened) reached[mark] += times;
    // A key that left may be convicted of its earlier work, beside the key that is here.
    CHECK(result.happened.at("notice.convicted") <= 4);
  }
  CHECK(reached["branch.another_key"] > 20);
  CHECK(reached["branch.invite_suspended"] > 0);
}

// With GLEANER_SEEDS: the number of seeds, from GLEANER_SEED on.
TEST_CASE("strangers: liars in storms change no checkpoint", "[sim]") {
  SmallWorld world;
  const auto [first, seeds] = seeds_to_run(40);
  std::map<std::string, std::uint64_t> reached;
  std::uint64_t convicted = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    const ClusterResult result = keep_promises(world, world.storm_of_strangers(seed));
    for (const auto& [mark, times] : result.happened) reached[mark] += times;
    convicted += result.convicted.size();
  }
  if (seeds < 40) return;
  REQUIRE(convicted > seeds / 10);
  for (const char* mark :
       {"notice.convicted", "notice.referee", "again.false_work", "log.took_over"}) {
    INFO(mark);
    REQUIRE(reached[mark] > 0);
  }
}

}  // namespace gleaner::sim

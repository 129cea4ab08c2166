#include "tests/sim/cluster.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "tests/sim/small_world.hpp"

namespace gleaner::sim {
namespace {

SmallWorld& world() {
  static SmallWorld data;
  return data;
}

ClusterOptions small_options() {
  ClusterOptions options;
  options.model = world().model();
  options.expected = &world().calm(options.model);
  return options;
}

ClusterResult run(const ClusterOptions& options) {
  ClusterResult result = world().run(options);
  INFO("seed " << options.seed);
  for (const std::string& violation : result.violations) FAIL_CHECK(violation);
  REQUIRE(result.finished);
  return result;
}

void add_faults(ClusterOptions& options) {
  options.faults.until = Millis(30'000);
  options.faults[Fault::kReset] = Millis(2'000);
  options.faults[Fault::kVolunteerKill] = Millis(3'000);
  options.faults[Fault::kVolunteerFreeze] = Millis(5'000);
  options.faults[Fault::kVolunteerStop] = Millis(3'000);
  options.faults[Fault::kMasterPower] = Millis(6'000);
}

// Three volunteers must train among faults what one trains in calm, on an input layer of the
// master's.
void require_promise(ClusterOptions options) {
  const bool lends_input = options.master.lends_input;
  options.expected = nullptr;
  options.volunteers = 1;
  options.master.lends_input = false;
  const ClusterResult one = run(options);
  options.master.lends_input = lends_input;
  options.volunteers = 3;
  options.expected = &one.reached;
  add_faults(options);
  REQUIRE(run(options).reached.digests == one.reached.digests);
}

}  // namespace

TEST_CASE("cluster: a calm run trains every round and learns", "[sim]") {
  const ClusterResult result = run(small_options());
  REQUIRE(result.reached.digests.size() == 7);  // the initial model and six rounds
  REQUIRE(result.history.size() == 6);
  REQUIRE(result.history.back().loss < result.history.front().loss);
  REQUIRE(result.history[2].evaluated == 40);
  REQUIRE(result.history.back().evaluated_all);
}

TEST_CASE("cluster: every checkpoint is the same for any number of volunteers", "[sim]") {
  for (const std::uint32_t volunteers : {2u, 3u, 7u}) {
    ClusterOptions options = small_options();
    options.volunteers = volunteers;
    options.seed = volunteers;
    REQUIRE(run(options).reached.digests == options.expected->digests);
  }
}

TEST_CASE("cluster: a volunteer that joins half-way changes nothing", "[sim]") {
  ClusterOptions options = small_options();
  options.join_spread_ms = 400;
  const ClusterResult result = run(options);
  REQUIRE(result.happened.at("log.moving") > 0);
  REQUIRE(result.reached.digests == options.expected->digests);
}

TEST_CASE("cluster: a volunteer that outlives the master downloads nothing again", "[sim]") {
  std::uint64_t rejoined = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    ClusterOptions options = small_options();
    options.seed = seed;
    options.volunteers = 1;  // nothing moves, so that any download is one too many
    options.faults.until = Millis(30'000);
    options.faults[Fault::kMasterPower] = Millis(500);
    options.faults[Fault::kReset] = Millis(700);
    options.faults[Fault::kVolunteerFreeze] = Millis(5'000);
    // It may learn by silence only that the master is another one.
    options.master.rejoin_grace = Millis(10'000);
    const ClusterResult result = run(options);
    INFO("seed " << seed);
    REQUIRE(result.reached.digests == options.expected->digests);
    REQUIRE(result.happened.count("branch.loads_a_checkpoint") == 0);
    const auto times = result.happened.find("log.rejoined");
    if (times != result.happened.end()) rejoined += times->second;
  }
  REQUIRE(rejoined > 40);
}

TEST_CASE("cluster: volunteers that vanish for good without a word are missed in time", "[sim]") {
  std::uint64_t missed = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    ClusterOptions options = small_options();
    options.seed = seed;
    options.volunteers = 4;
    options.faults.until = Millis(3'000);
    options.faults[Fault::kVolunteerGone] = Millis(100);
    missed += run(options).happened["notice.left"];
  }
  REQUIRE(missed >= 10);
}

TEST_CASE("cluster: machines that come and go by a trace leave the model as it was", "[sim]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    ClusterOptions options = small_options();
    options.seed = seed;
    options.volunteers = 5;
    options.faults.until = Millis(5'000);
    for (const auto& [from, volunteers] : std::map<int, std::uint32_t>{
             {0, 2}, {150, 5}, {300, 1}, {450, 4}, {700, 0}, {900, 3}, {1'100, 2}}) {
      options.presence.push_back({Millis(from), volunteers, seed % 2 == 0});
    }
    const ClusterResult result = run(options);
    REQUIRE(result.reached.digests == options.expected->digests);
    REQUIRE(result.happened.at("notice.left") >= 3);
  }
}

TEST_CASE("cluster: a fold that was reported survives the power loss that follows", "[sim]") {
  std::uint64_t survived = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    ClusterOptions options = small_options();
    options.seed = seed;
    options.faults.until = Millis(20'000);
    options.faults[Fault::kMasterInFold] = Millis(50);
    survived += run(options).happened["branch.died_after_folded"];
  }
  REQUIRE(survived > 5);
}

TEST_CASE("cluster: a run that stands still is seen, with what it waits for", "[sim]") {
  ClusterOptions options = small_options();
  options.volunteers = 0;
  const ClusterResult result = world().run(options);
  REQUIRE_FALSE(result.finished);
  REQUIRE(result.violations.size() == 1);
  REQUIRE_THAT(result.violations[0], Catch::StartsWith("progress: not finished"));
  REQUIRE_THAT(result.violations[0], Catch::Contains("waiting for a volunteer"));
}

TEST_CASE("cluster: the same seed gives the same events, to the last one", "[sim]") {
  for (const std::uint64_t seed : {11u, 12u, 13u}) {
    const ClusterResult a = run(world().storm(seed));
    const ClusterResult b = run(world().storm(seed));
    REQUIRE(a.events == b.events);
    REQUIRE(a.event_digest == b.event_digest);
    REQUIRE(a.happened == b.happened);
    REQUIRE(run(world().storm(seed + 10)).event_digest != a.event_digest);
  }
}

TEST_CASE("cluster: the lag and the seed are part of the model", "[sim]") {
  const ClusterOptions usual = small_options();
  for (const std::uint32_t staleness : {0u, 16u}) {
    ClusterOptions options = small_options();
    options.model.staleness = staleness;
    options.expected = nullptr;
    options.volunteers = 1;
    const ClusterResult one = run(options);
    options.volunteers = 4;
    options.seed = 99;
    options.expected = &one.reached;
    REQUIRE(one.reached.digests == run(options).reached.digests);
    REQUIRE(one.reached.digests.at(6) != usual.expected->digests.at(6));
  }
  ClusterOptions options = small_options();
  options.model.seed = 2;
  options.expected = nullptr;
  REQUIRE(run(options).reached.digests.at(6) != usual.expected->digests.at(6));
}

TEST_CASE("cluster: no way of sampling loosens the promise", "[sim]") {
  for (const Sampling sampling : {Sampling::kRandom, Sampling::kAll, Sampling::kLsh}) {
    ClusterOptions options = small_options();
    options.model.sampling = sampling;
    options.model.random_negatives = 5;
    options.model.dropout = 0.2F;
    options.model.feature_dropout = 0.2F;
    require_promise(options);
  }
}

TEST_CASE("cluster: an input layer that volunteers hold is trained as the master's own", "[sim]") {
  for (const std::uint32_t staleness : {0u, 2u}) {
    ClusterOptions options = small_options();
    options.model.staleness = staleness;
    options.expected = &world().calm(options.model);
    options.master.lends_input = true;
    for (const std::uint32_t volunteers : {1u, 4u}) {
      options.volunteers = volunteers;
      REQUIRE(run(options).reached.digests == options.expected->digests);
    }
    add_faults(options);
    std::uint64_t replays = 0;
    for (options.seed = 1; options.seed <= 8; ++options.seed) {
      const ClusterResult stormy = run(options);
      REQUIRE(stormy.reached.digests == options.expected->digests);
      const auto times = stormy.happened.find("branch.input_replay");
      if (times != stormy.happened.end()) replays += times->second;
    }
    REQUIRE(replays > 0);
  }
}

TEST_CASE("cluster: an input layer of volunteers knows of drop-out and one shard", "[sim]") {
  ClusterOptions options = small_options();
  options.master.lends_input = true;
  options.model.input_shards = 1;
  options.model.dropout = 0.2F;
  options.model.feature_dropout = 0.2F;
  require_promise(options);
}

TEST_CASE("cluster: a run that diverges is cut alike whoever trains it", "[sim]") {
  ClusterOptions options = small_options();
  options.model.output_rate = 4.0F;
  options.model.input_rate = 4.0F;
  options.model.divergence_factor = 1.5F;
  options.expected = nullptr;
  options.volunteers = 1;
  const ClusterResult one = run(options);
  REQUIRE(one.happened.contains("again.divergence"));
  options.volunteers = 3;
  options.expected = &one.reached;
  REQUIRE(run(options).reached.digests == one.reached.digests);
  add_faults(options);
  for (options.seed = 1; options.seed <= 8; ++options.seed) {
    options.master.lends_input = options.seed % 2 == 0;
    const ClusterResult stormy = run(options);
    REQUIRE(stormy.reached.digests == one.reached.digests);
    REQUIRE(stormy.happened.contains("again.divergence"));
  }
}

}  // namespace gleaner::sim

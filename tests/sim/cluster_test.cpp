#include "tests/sim/cluster.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>

#include "tests/sim/planted_data.hpp"

namespace gleaner::sim {
namespace {

struct World {
  std::unique_ptr<PackedDataset> train = planted_data({}, 7, 0);
  std::unique_ptr<PackedDataset> test = planted_data({40, 48, 40}, 7, 1);
};

const World& world() {
  static const World data;
  return data;
}

ModelConfig small_model() {
  ModelConfig model;
  model.data_fingerprint = world().train->fingerprint();
  model.points = world().train->points();
  model.features = world().train->features();
  model.labels = world().train->labels();
  model.hidden = 32;
  model.input_shards = 2;
  model.output_shards = 5;
  model.epochs = 2;
  model.batch_examples = 8;
  model.round_batches = 5;  // 12 batches an epoch: rounds of 5, 5 and 2
  model.staleness = 2;
  model.hash_bits = 3;
  model.tables = 4;
  model.active_cap = 20;
  model.rehash_batches = 3;
  model.output_rate = 0.05F;
  model.input_rate = 0.02F;
  return model;
}

ClusterResult run(const ClusterOptions& options) {
  return run_cluster(options, *world().train, *world().test);
}

void require_good(const ClusterResult& result, std::uint64_t seed) {
  INFO("seed " << seed);
  for (const std::string& violation : result.violations) FAIL_CHECK(violation);
  REQUIRE(result.finished);
}

const std::map<RoundIndex, std::string>& calm_digests() {
  static const std::map<RoundIndex, std::string> digests = [] {
    ClusterOptions options;
    options.model = small_model();
    options.volunteers = 1;
    const ClusterResult result = run(options);
    require_good(result, 1);
    return result.digests;
  }();
  return digests;
}

Faults every_fault() {
  Faults faults;
  faults.until = Millis(30'000);
  faults.reset_every = Millis(2'000);
  faults.volunteer_crash_every = Millis(3'000);
  faults.volunteer_freeze_every = Millis(5'000);
  faults.volunteer_leave_every = Millis(3'000);
  faults.master_crash_every = Millis(6'000);
  faults.master_stop_every = Millis(9'000);
  return faults;
}

std::uint64_t environment(const char* name, std::uint64_t fallback) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : fallback;
}

}  // namespace

TEST_CASE("cluster: a calm run trains every round and learns", "[sim]") {
  ClusterOptions options;
  options.model = small_model();
  const ClusterResult result = run(options);
  require_good(result, options.seed);
  REQUIRE(result.digests.size() == 7);  // the initial model and six rounds
  REQUIRE(result.history.size() == 6);
  REQUIRE(result.history.back().loss < result.history.front().loss);
  REQUIRE(result.history[2].evaluated == 40);
  REQUIRE(result.evaluation.all_points);
}

TEST_CASE("cluster: every checkpoint is the same for any number of volunteers", "[sim]") {
  for (const std::uint32_t volunteers : {2u, 3u, 7u}) {
    ClusterOptions options;
    options.model = small_model();
    options.volunteers = volunteers;
    options.seed = volunteers;
    const ClusterResult result = run(options);
    require_good(result, options.seed);
    REQUIRE(result.digests == calm_digests());
  }
}

TEST_CASE("cluster: a volunteer that joins half-way changes nothing", "[sim]") {
  ClusterOptions options;
  options.model = small_model();
  options.volunteers = 3;
  options.join_spread_ms = 400;
  const ClusterResult result = run(options);
  require_good(result, options.seed);
  REQUIRE(result.happened.at("remark.moving") > 0);
  REQUIRE(result.digests == calm_digests());
}

TEST_CASE("cluster: no storm of faults changes a bit of any checkpoint", "[sim]") {
  const std::uint64_t first = environment("GLEANER_SEED", 1);
  const std::uint64_t count = environment("GLEANER_SEEDS", 60);
  std::map<std::string, std::uint64_t> happened;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    ClusterOptions options;
    options.model = small_model();
    options.seed = seed;
    options.volunteers = 1 + static_cast<std::uint32_t>(seed % 5);
    options.faults = every_fault();
    // Slow links stretch the run over the faults.
    options.latency_max = Millis(seed % 3 == 0 ? 400 : 100);
    const ClusterResult result = run(options);
    require_good(result, seed);
    INFO("seed " << seed);
    REQUIRE(result.digests == calm_digests());
    for (const auto& [what, times] : result.happened) happened[what] += times;
  }
  // A storm that never reaches the rare paths proves little.
  if (count >= 50) {
    for (const char* what :
         {"fault.reset", "fault.volunteer_crash", "fault.volunteer_freeze", "fault.volunteer_leave",
          "fault.master_crash", "fault.master_stop", "notice.gone", "remark.moving",
          "remark.leaving", "remark.stopping", "remark.rejoined", "exit.success"}) {
      INFO(what);
      REQUIRE(happened[what] > 0);
    }
  }
}

TEST_CASE("cluster: a volunteer that outlives the master downloads nothing again", "[sim]") {
  std::uint64_t rejoined = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    ClusterOptions options;
    options.model = small_model();
    options.seed = seed;
    options.volunteers = 1;  // nothing moves, so that any download is one too many
    options.faults.until = Millis(30'000);
    options.faults.master_crash_every = Millis(500);
    options.faults.reset_every = Millis(700);
    options.faults.volunteer_freeze_every = Millis(5'000);
    // It may learn by silence only that the master is another one.
    options.rejoin_grace = Millis(10'000);
    const ClusterResult result = run(options);
    require_good(result, seed);
    INFO("seed " << seed);
    REQUIRE(result.digests == calm_digests());
    REQUIRE(result.happened.count("download.chunk") == 0);
    const auto times = result.happened.find("remark.rejoined");
    if (times != result.happened.end()) rejoined += times->second;
  }
  REQUIRE(rejoined > 40);
}

TEST_CASE("cluster: the same seed gives the same events, to the last one", "[sim]") {
  ClusterOptions options;
  options.model = small_model();
  options.seed = 11;
  options.faults = every_fault();
  const ClusterResult a = run(options);
  const ClusterResult b = run(options);
  require_good(a, options.seed);
  REQUIRE(a.events == b.events);
  REQUIRE(a.event_digest == b.event_digest);
  options.seed = 12;
  REQUIRE(run(options).event_digest != a.event_digest);
}

TEST_CASE("cluster: the lag and the seed are part of the model", "[sim]") {
  for (const std::uint32_t staleness : {0u, 16u}) {
    ClusterOptions options;
    options.model = small_model();
    options.model.staleness = staleness;
    const ClusterResult one = run(options);
    require_good(one, options.seed);
    options.volunteers = 4;
    options.seed = 99;
    const ClusterResult four = run(options);
    require_good(four, options.seed);
    REQUIRE(one.digests == four.digests);
    REQUIRE(one.digests.at(6) != calm_digests().at(6));
  }
  ClusterOptions options;
  options.model = small_model();
  options.model.seed = 2;
  REQUIRE(run(options).digests.at(6) != calm_digests().at(6));
}

TEST_CASE("cluster: neither sampling nor hash family loosens the promise", "[sim]") {
  for (const Sampling sampling : {Sampling::kRandom, Sampling::kAll, Sampling::kLsh}) {
    ClusterOptions options;
    options.model = small_model();
    options.model.sampling = sampling;
    options.model.hash_family = HashFamilyKind::kDwta;
    options.model.random_negatives = 5;
    options.model.dropout = 0.2F;
    options.volunteers = 1;
    const ClusterResult one = run(options);
    require_good(one, options.seed);
    options.volunteers = 3;
    options.faults = every_fault();
    const ClusterResult three = run(options);
    require_good(three, options.seed);
    REQUIRE(one.digests == three.digests);
  }
}

}  // namespace gleaner::sim

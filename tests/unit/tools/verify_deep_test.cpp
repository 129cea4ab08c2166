// Training again what a store holds, on small generated data.
#include "tools/verify_deep.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "common/dataset/open_or_pack.hpp"
#include "common/run_plan.hpp"
#include "storage/kept_checkpoints.hpp"
#include "storage/rocks_store.hpp"
#include "tests/unit/dataset/dataset_files.hpp"
#include "tests/unit/storage/check_result.hpp"
#include "tools/dataset_synth.hpp"
#include "tools/retrain.hpp"

namespace gleaner {
namespace {

using test::require_ok;
using test::require_value;

struct DeepFixture {
  DeepFixture() {
    for (const auto& [name, seed] : {std::pair("train.txt", 1), std::pair("other.txt", 2)}) {
      SynthFlags synth;
      synth.train = folder.file(name);
      synth.test = folder.file(std::string(name) + ".test");
      synth.points = 400;
      synth.test_points = 10;
      synth.options.dimensions = {60, 40};
      synth.options.seed = static_cast<std::uint64_t>(seed);
      require_ok(run_dataset_synth(synth));
    }
    train = require_value(open_or_pack(folder.file("train.txt")));
    other = require_value(open_or_pack(folder.file("other.txt")));
    model.data_fingerprint = train->fingerprint();
    model.points = train->points();
    model.features = train->features();
    model.labels = train->labels();
    model.hidden = 32;
    model.output_shards = 3;
    model.input_shards = 2;
    model.epochs = 2;
    model.batch_examples = 32;
    model.round_batches = 4;
    model.hash_bits = 3;
    model.tables = 6;
    model.active_cap = 20;
  }

  // Trains on from wherever the store is; `data` need not be the run's own.
  void train_to(RoundIndex checkpoint, const PackedDataset& data) {
    auto disk = require_value(open_rocks_store(store, OpenMode::kReadWrite));
    auto run = require_value(
        RunStore::create_or_open(std::move(disk), RunIdentity{model, {}}, count_labels(*train)));
    require_ok(retrain(*run, data, checkpoint, pool, [] {}));
  }

  [[nodiscard]] Result<DeepOutcome> verify(const std::string& from, Findings& findings) const {
    return verify_deep(store, {folder.file("train.txt"), from, 2}, findings);
  }

  TempFolder folder;
  std::string store = folder.file("store");
  std::unique_ptr<PackedDataset> train;
  std::unique_ptr<PackedDataset> other;
  ModelConfig model;
  ThreadPool pool{1};
};

}  // namespace

TEST_CASE("verify --deep: what was trained is found again, from the start and from a kept one",
          "[tools]") {
  DeepFixture fixture;
  fixture.train_to(1, *fixture.train);
  require_ok(keep_checkpoint(fixture.store, "one"));
  fixture.train_to(3, *fixture.train);
  for (const char* from : {"start", ""}) {
    Findings findings;
    const DeepOutcome outcome = require_value(fixture.verify(from, findings));
    REQUIRE(findings.count() == 0);
    REQUIRE(outcome.digest == outcome.retrained_digest);
    REQUIRE(outcome.base == (*from == 's' ? 0U : 1U));
    REQUIRE(outcome.checkpoint == 3);
    REQUIRE(outcome.batches == RunPlan(fixture.model).round_begin(3) -
                                   RunPlan(fixture.model).round_begin(outcome.base));
  }
  // The store, its kept checkpoint and the data remain, and nothing of the work does.
  REQUIRE_FALSE(std::filesystem::exists(fixture.store + ".deep"));
  REQUIRE(kept_names(fixture.store) == std::vector<std::string>{"one"});
}

TEST_CASE("verify --deep: a checkpoint that training does not give is found, sound as it is",
          "[tools]") {
  DeepFixture fixture;
  fixture.train_to(1, *fixture.train);
  fixture.train_to(2, *fixture.other);
  Findings findings;
  const DeepOutcome outcome = require_value(fixture.verify("start", findings));
  REQUIRE(outcome.digest != outcome.retrained_digest);
  REQUIRE(findings.count() >= 2);
  REQUIRE(findings.kept()[0].where == "checkpoint 2");
  REQUIRE(std::ranges::any_of(findings.kept(),
                              [](const Finding& f) { return f.where.starts_with("shard "); }));
}

TEST_CASE("verify --deep: says why it cannot be done", "[tools]") {
  DeepFixture fixture;
  fixture.train_to(1, *fixture.train);
  Findings findings;
  REQUIRE_THAT(message_of(fixture.verify("", findings)),
               Catch::Contains("no checkpoint before 1 is kept"));
  require_ok(keep_checkpoint(fixture.store, "same"));
  REQUIRE_THAT(message_of(fixture.verify(kept_path(fixture.store, "same"), findings)),
               Catch::Contains("which is not before 1"));
  REQUIRE_THAT(message_of(verify_deep(fixture.store, {"", "start", 1}, findings)),
               Catch::Contains("--train"));
  REQUIRE_THAT(message_of(verify_deep(fixture.store, {fixture.folder.file("other.txt"), "start", 1},
                                      findings)),
               Catch::Contains("not what the run was trained on"));
}

}  // namespace gleaner

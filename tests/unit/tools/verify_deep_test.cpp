// Training again what a store holds, on small generated data.
#include "tools/keep/verify_deep.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "common/data/open_or_pack.hpp"
#include "common/model/run_plan.hpp"
#include "master/in_process_training.hpp"
#include "storage/engine/rocks_store.hpp"
#include "storage/keep/initial_model.hpp"
#include "storage/keep/kept_checkpoints.hpp"
#include "storage/keep/wide_start.hpp"
#include "tests/unit/common/data/dataset_files.hpp"
#include "tests/unit/storage/check_result.hpp"
#include "tools/dataset/dataset_command.hpp"

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

  // Makes the run one without a hidden layer.
  void make_wide() {
    model.hidden = 0;
    start = require_value(WideStart::open(model, *train));
    model.wide_rows = start->sizes().value().rows;
  }

  // Trains on from wherever the store is; `data` need not be the run's own.
  void train_to(RoundIndex checkpoint, const PackedDataset& data) {
    auto disk = require_value(open_rocks_store(store, OpenMode::kReadWrite));
    auto run = require_value(RunStore::create_or_open(std::move(disk), RunIdentity{model, {}},
                                                      count_labels(*train),
                                                      start ? start->rows() : InitialRows()));
    require_ok(train_in_process(*run, data, checkpoint, {}, pool, [] {}));
  }

  [[nodiscard]] Result<DeepOutcome> verify(const std::string& from, Findings& findings,
                                           std::uint32_t rounds = 0,
                                           std::optional<std::uint64_t> sample = {}) const {
    return verify_deep(store, {folder.file("train.txt"), from, 2, rounds, sample}, findings);
  }

  TempFolder folder;
  std::string store = folder.file("store");
  std::unique_ptr<PackedDataset> train;
  std::unique_ptr<PackedDataset> other;
  ModelConfig model;
  std::unique_ptr<WideStart> start;  // null: there is a hidden layer
  ThreadPool pool{1};
};

}  // namespace

TEST_CASE("verify --deep: what was trained is found again, from the start and from a kept one",
          "[tools]") {
  DeepFixture fixture;
  if (GENERATE(false, true)) fixture.make_wide();
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
  if (GENERATE(false, true)) fixture.make_wide();
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

TEST_CASE("verify --deep: some rounds are held against the digests in the history", "[tools]") {
  DeepFixture fixture;
  fixture.train_to(2, *fixture.train);
  require_ok(keep_checkpoint(fixture.store, "two"));
  fixture.train_to(3, *fixture.other);
  fixture.train_to(5, *fixture.train);
  for (const std::uint32_t rounds : {1U, 2U, 3U}) {
    Findings findings;
    const DeepOutcome outcome = require_value(fixture.verify("start", findings, rounds));
    REQUIRE(outcome.base == 0);
    REQUIRE(outcome.checkpoint == rounds);
    // The third was trained on other data.
    REQUIRE(findings.count() == (rounds == 3 ? 1 : 0));
    REQUIRE((outcome.digest == outcome.retrained_digest) == (rounds < 3));
    REQUIRE(outcome.digest.size() == 16);
  }
  // As many as there are is all of them.
  Findings findings;
  const DeepOutcome all = require_value(fixture.verify("", findings, 100));
  REQUIRE(all.base == 2);
  REQUIRE(all.checkpoint == 5);
  REQUIRE(all.digest.size() == 64);
}

TEST_CASE("verify --deep: a sample is one round from a kept checkpoint or the start, by its seed",
          "[tools]") {
  DeepFixture fixture;
  fixture.train_to(1, *fixture.train);
  require_ok(keep_checkpoint(fixture.store, "b"));
  fixture.train_to(3, *fixture.train);
  require_ok(keep_checkpoint(fixture.store, "a"));
  fixture.train_to(5, *fixture.train);
  std::set<RoundIndex> bases;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Findings findings;
    const DeepOutcome outcome = require_value(fixture.verify("", findings, 0, seed));
    REQUIRE(findings.count() == 0);
    REQUIRE(outcome.checkpoint == outcome.base + 1);
    REQUIRE(require_value(fixture.verify("", findings, 2, seed)).checkpoint == outcome.base + 2);
    bases.insert(outcome.base);
  }
  REQUIRE(bases == std::set<RoundIndex>{0, 1, 3});
}

TEST_CASE("verify --deep: a history without digests is held against nothing", "[tools]") {
  DeepFixture fixture;
  fixture.train_to(2, *fixture.train);
  {
    auto disk = require_value(open_rocks_store(fixture.store, OpenMode::kReadWrite));
    auto run = require_value(RunStore::open(std::move(disk)));
    RoundRecord first = require_value(run->history()).at(0);
    first.rows_digest = 0;
    require_ok(run->put_history(first));
  }
  Findings findings;
  REQUIRE_THAT(message_of(fixture.verify("start", findings, 1)),
               Catch::Contains("no digest of checkpoint 1"));
  REQUIRE(require_value(fixture.verify("start", findings)).checkpoint == 2);
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
  REQUIRE_THAT(message_of(verify_deep(fixture.store, {"", "start", 1, 0, {}}, findings)),
               Catch::Contains("--train"));
  REQUIRE_THAT(message_of(verify_deep(
                   fixture.store, {fixture.folder.file("other.txt"), "start", 1, 0, {}}, findings)),
               Catch::Contains("not what the run was trained on"));
}

}  // namespace gleaner

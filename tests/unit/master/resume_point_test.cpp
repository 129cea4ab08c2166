// A starting master and the commits that an earlier process left staged.
#include "master/shell/resume_point.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "common/data/packed_dataset.hpp"
#include "common/model/run_plan.hpp"
#include "storage/engine/memory_store.hpp"
#include "storage/keep/initial_model.hpp"
#include "storage/keep/store_check.hpp"
#include "storage/keep/wide_start.hpp"
#include "storage/record.hpp"
#include "tests/sim/workload/planted_data.hpp"
#include "tests/support/random_delta.hpp"
#include "tests/unit/storage/check_result.hpp"
#include "tests/unit/storage/small_run.hpp"

namespace gleaner {
namespace {

using test::make_settled;
using test::require_ok;
using test::require_value;

constexpr std::uint32_t kShards = 3;

// A run without a hidden layer: two epochs of two rounds.
struct WideRun {
  WideRun() {
    identity.model.points = train->points();
    identity.model.features = train->features();
    identity.model.labels = train->labels();
    identity.model.hidden = 0;
    identity.model.output_shards = kShards;
    identity.model.epochs = 2;
    identity.model.batch_examples = 8;
    identity.model.round_batches = 6;
    start = require_value(WideStart::open(identity.model, *train));
    identity.model.wide_rows = require_value(start->sizes()).rows;
    open();
    REQUIRE(RunPlan(identity.model).round_count() == 4);
  }

  // As the next process does.
  void open() {
    run.reset();
    run = require_value(
        RunStore::create_or_open(disk.share(), identity, count_labels(*train), start->rows()));
  }

  void stage(RoundIndex round) {
    const ShardMap& map = run->shard_map();
    for (std::uint32_t s = 0; s < kShards; ++s) {
      const ShardId shard{s};
      Rng random(round, Purpose::kTest, s);
      SparseUpdate update;
      update.rows =
          require_value(run->read_rows(shard, 0, map.row_count(shard), run->checkpoint())).rows;
      REQUIRE_FALSE(update.rows.empty());
      for (std::size_t i = 0; i < update.rows.size(); ++i) {
        test::push_random_delta(update, map, shard, 0.1F, random);
        update.states.push_back(1);
      }
      require_ok(run->stage(round, shard, 0, 1, update));
    }
    require_ok(test::settle_round(*run, round));
  }

  std::vector<SettledRound> settle(std::optional<std::uint32_t> evaluate_every_epochs) {
    open();
    folded.clear();
    damages.clear();
    auto settled = require_value(settle_staged(
        *run, evaluate_every_epochs, [&](RoundIndex round) { folded.push_back(round); },
        [&](const Error& error) { damages.push_back(error); }));
    CHECK(require_value(read_resume_point(*run, settled)).settled == settled);
    return settled;
  }

  std::unique_ptr<PackedDataset> train = planted_data({}, 7, 0);
  RunIdentity identity;
  std::unique_ptr<WideStart> start;
  MemoryStore disk;
  std::unique_ptr<RunStore> run;
  std::vector<RoundIndex> folded;
  std::vector<Error> damages;
};

std::vector<SettledRound> rounds(RoundIndex begin, RoundIndex end) {
  std::vector<SettledRound> all;
  for (RoundIndex round = begin; round < end; ++round) {
    for (std::uint32_t s = 0; s < kShards; ++s) all.push_back(make_settled(round, ShardId{s}));
  }
  return all;
}

}  // namespace

TEST_CASE("resume point: settled commits are kept up to the next evaluation", "[master]") {
  WideRun wide;
  for (RoundIndex round = 0; round < 3; ++round) wide.stage(round);
  Findings findings;
  check_store(wide.disk, findings);
  CHECK(findings.count() == 0);
  CHECK(wide.settle(std::nullopt) == rounds(0, 3));
  CHECK(wide.settle(0) == rounds(0, 3));  // only at the end
  CHECK(wide.settle(1) == rounds(0, 2));
  CHECK(wide.settle(std::nullopt) == rounds(0, 2));  // the others are gone
  CHECK(wide.damages.empty());
}

TEST_CASE("resume point: where the checkpoint is still to be evaluated, no commit is kept",
          "[master]") {
  WideRun wide;
  for (RoundIndex round = 0; round < 2; ++round) {
    wide.stage(round);
    require_ok(wide.run->fold(round, test::make_history(round + 1)));
  }
  wide.stage(2);
  SECTION("nothing is on record") {
    CHECK(wide.settle(1).empty());
    CHECK_FALSE(require_value(wide.run->is_staged(2, ShardId{0})));
  }
  SECTION("the evaluation is on record") {
    RoundRecord evaluated = test::make_history(2);
    evaluated.evaluated = 5;
    require_ok(wide.run->put_history(evaluated));
    CHECK(wide.settle(1) == rounds(2, 3));
  }
}

TEST_CASE("resume point: a fold that was decided comes first", "[master]") {
  WideRun wide;
  for (RoundIndex round = 0; round < 2; ++round) wide.stage(round);
  require_ok(wide.run->begin_fold(0, test::make_history(1)));
  SECTION("and is done") {
    CHECK(wide.settle(1) == rounds(1, 2));
    CHECK(wide.folded == std::vector<RoundIndex>{0});
    CHECK(wide.run->checkpoint() == 1);
  }
  SECTION("and waits where a part is damaged, of which is told once") {
    const StagedKeyBytes key = encode_staged_key({0, ShardId{0}, 0});
    WriteBatch batch;
    batch.put(Table::kStaged, key, as_bytes("damaged"));
    require_ok(wide.disk.write(std::move(batch), Durability::kSync));
    const auto kept = wide.settle(1);
    CHECK(kept.size() == 4);
    CHECK(wide.run->checkpoint() == 0);
    CHECK(wide.damages.size() == 1);
    CHECK(kept.front() == make_settled(0, ShardId{1}));
  }
}

TEST_CASE("resume point: with a hidden layer nothing that is staged is kept", "[master]") {
  const MemoryStore disk;
  const auto run = test::open_small(disk);
  require_ok(test::stage_round(*run, 0));
  require_ok(test::settle_round(*run, 0));
  const auto settled = require_value(settle_staged(
      *run, std::nullopt, [](RoundIndex) {}, [](const Error&) {}));
  CHECK(settled.empty());
  CHECK_FALSE(require_value(run->is_staged(0, ShardId{0})));
}

}  // namespace gleaner

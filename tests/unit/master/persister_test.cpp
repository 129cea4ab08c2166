// The storage tasks: accounts, a disk without room, a fold among others.
#include "master/shell/persister.hpp"

#include <catch2/catch.hpp>

#include "storage/engine/memory_store.hpp"
#include "tests/unit/storage/check_result.hpp"
#include "tests/unit/storage/counted_store.hpp"
#include "tests/unit/storage/small_run.hpp"

namespace gleaner {
namespace {

using test::require_ok;
using test::require_value;

std::int64_t no_wall_clock() {
  return 0;
}

FoldTask fold_task() {
  FoldTask task;
  task.record.checkpoint = 1;
  AccountRecord account;
  account.name = "atlas";
  account.units = 5;
  task.accounts.push_back(account);
  return task;
}

AccountRecord account_of(std::uint64_t identity, std::uint64_t issued, std::uint64_t units,
                         bool is_final) {
  AccountRecord account;
  account.identity = {0, identity};
  account.units_issued = issued;
  account.units = units;
  account.units_expired = is_final ? issued - units : 0;
  account.is_final = is_final;
  return account;
}

Event run_to_end(Persister& persister, const StorageTask& task) {
  while (true) {
    if (auto done = persister.run(task)) return std::move(*done);
  }
}

}  // namespace

TEST_CASE("persister: accounts add up over records that are final and lives that end", "[master]") {
  MemoryStore disk;
  const RunIdentity identity = test::small_identity();
  const auto store = require_value(
      RunStore::create_or_open(disk.share(), identity, test::small_label_counts(identity)));
  std::optional<Persister> persister(std::in_place, *store, &no_wall_clock);
  const auto fold = [&](const AccountRecord& account) {
    FoldTask task;
    task.round = store->checkpoint();
    task.record.checkpoint = task.round + 1;
    task.accounts = {account};
    require_ok(test::stage_round(*store, task.round));
    REQUIRE(std::holds_alternative<Folded>(run_to_end(*persister, task)));
    return require_value(store->account(account.identity));
  };
  CHECK(fold(account_of(7, 3, 2, false)).units_issued == 3);
  CHECK(fold(account_of(7, 5, 4, true)).units_issued == 5);  // of the whole life so far
  auto account = fold(account_of(7, 2, 1, false));           // it came back
  CHECK(account.units_issued == 7);
  CHECK(account.units == 5);
  CHECK(account.units_expired == 1);
  persister.emplace(*store, &no_wall_clock);  // what was out has expired
  account = fold(account_of(7, 1, 1, true));
  CHECK(account.units_issued == 8);
  CHECK(account.units == 6);
  CHECK(account.units_expired == 2);
}

TEST_CASE("persister: a task that the disk had no room for is done when it is run again",
          "[master]") {
  MemoryStore disk;
  const RunIdentity identity = test::small_identity();
  const auto store = require_value(
      RunStore::create_or_open(disk.share(), identity, test::small_label_counts(identity)));
  std::vector<RoundIndex> folds;
  Persister persister(*store, &no_wall_clock,
                      [&](RoundIndex checkpoint) { folds.push_back(checkpoint); });
  StageTask stage;
  stage.update =
      std::make_shared<const SparseUpdate>(test::make_update(store->shard_map(), ShardId{0}, 0));
  disk.fill_after(0);
  CHECK(std::holds_alternative<StoreFull>(run_to_end(persister, stage)));
  CHECK(std::holds_alternative<StoreFull>(run_to_end(persister, stage)));
  disk.make_room();
  CHECK(std::holds_alternative<Staged>(run_to_end(persister, stage)));
  require_ok(store->discard_staged());

  require_ok(test::stage_round(*store, 0));
  // Room runs out at each write in turn: the decision, the fold, and what follows it.
  const std::uint64_t room = GENERATE(0u, 1u, 2u, 3u);
  disk.fill_after(room);
  CHECK(std::holds_alternative<StoreFull>(run_to_end(persister, fold_task())));
  CHECK(store->checkpoint() == (room < 2 ? 0u : 1u));
  disk.make_room();
  CHECK(std::holds_alternative<Folded>(run_to_end(persister, fold_task())));
  CHECK(store->checkpoint() == 1);
  CHECK(require_value(store->accounts()).at(0).units == 5);
  CHECK(folds == std::vector<RoundIndex>{1});
}

TEST_CASE("persister: a commit is settled once all of it is staged", "[master]") {
  MemoryStore disk;
  const auto store = test::open_small(disk);
  Persister persister(*store, &no_wall_clock);
  StageTask stage;
  stage.update =
      std::make_shared<const SparseUpdate>(test::make_update(store->shard_map(), ShardId{0}, 0));
  const SettleTask settle{test::make_settled(0, ShardId{0})};
  CHECK(std::holds_alternative<TaskFailed>(run_to_end(persister, settle)));
  CHECK(std::holds_alternative<Staged>(run_to_end(persister, stage)));
  disk.fill_after(0);
  CHECK(std::holds_alternative<StoreFull>(run_to_end(persister, settle)));
  disk.make_room();
  CHECK(std::holds_alternative<Settled>(run_to_end(persister, settle)));
  const auto kept = require_value(
      test::open_small(disk)->keep_settled([](RoundIndex) { return false; }, [](const Error&) {}));
  CHECK(kept == std::vector<SettledRound>{settle.settled});
  // Another commit in its place counts only when it is settled itself.
  CHECK(std::holds_alternative<Staged>(run_to_end(persister, stage)));
  const auto again = test::open_small(disk);
  CHECK(require_value(again->is_staged(0, ShardId{0})));
  CHECK(require_value(again->keep_settled([](RoundIndex) { return false; }, [](const Error&) {}))
            .empty());
  CHECK_FALSE(require_value(again->is_staged(0, ShardId{0})));
}

TEST_CASE("persister: between the steps of a fold commits are staged and rows read", "[master]") {
  MemoryStore disk;
  const RunIdentity identity = test::small_identity();
  const auto store = require_value(
      RunStore::create_or_open(disk.share(), identity, test::small_label_counts(identity)));
  Persister persister(*store, &no_wall_clock);
  require_ok(test::stage_round(*store, 0));
  StageTask stage;
  stage.round = 1;
  stage.update =
      std::make_shared<const SparseUpdate>(test::make_update(store->shard_map(), ShardId{0}, 1));
  ReadChunkTask read;
  read.row_end = store->shard_map().row_count(ShardId{0});
  read.base_round = 1;  // what the fold is going to make
  std::vector<float> values;
  std::uint32_t steps = 0;
  while (!persister.run(fold_task())) {
    CHECK(store->checkpoint() == 0);
    CHECK(std::holds_alternative<Staged>(run_to_end(persister, stage)));
    values = std::get<ChunkRead>(run_to_end(persister, read)).rows.values;
    ++steps;
  }
  CHECK(steps >= store->shard_map().shard_count() - 1);
  CHECK(store->checkpoint() == 1);
  CHECK(require_value(store->is_staged(1, ShardId{0})));
  CHECK(std::get<ChunkRead>(run_to_end(persister, read)).rows.values == values);
  REQUIRE_FALSE(values.empty());

  MemoryStore calm_disk;
  const auto calm = require_value(
      RunStore::create_or_open(calm_disk.share(), identity, test::small_label_counts(identity)));
  require_ok(test::train_to(*calm, 1));
  CHECK(require_value(store->checkpoint_digest()) == require_value(calm->checkpoint_digest()));
}

TEST_CASE("persister: an evaluation reads one record of the history", "[master]") {
  MemoryStore disk;
  const RunIdentity identity = test::small_identity();
  std::size_t reads = 0;
  const auto store = require_value(
      RunStore::create_or_open(std::make_unique<test::CountedStore>(disk.share(), reads), identity,
                               test::small_label_counts(identity)));
  for (RoundIndex round = 0; round < 3; ++round) {
    require_ok(test::stage_round(*store, round));
    require_ok(store->fold(round, test::make_history(round + 1)));
  }
  Persister persister(*store, &no_wall_clock);
  RecordEvaluationTask task;
  task.evaluation.points = 7;
  reads = 0;
  REQUIRE(std::holds_alternative<HistoryRecorded>(run_to_end(persister, task)));
  CHECK(reads == 1);
  const auto history = require_value(store->history());
  REQUIRE(history.size() == 3);
  CHECK(history.back().evaluated == 7);
  CHECK(history.front().evaluated == 0);
  CHECK(require_value(store->history_at(3))->evaluated == 7);
  CHECK_FALSE(require_value(store->history_at(4)));
}

}  // namespace gleaner

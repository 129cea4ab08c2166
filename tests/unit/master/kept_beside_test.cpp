// Backups and checkpoints to go back to, which a master keeps beside its store.
#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "master/shell/keeper.hpp"
#include "master/shell/way_back.hpp"
#include "storage/engine/rocks_store.hpp"
#include "storage/keep/kept_checkpoints.hpp"
#include "tests/unit/storage/check_result.hpp"
#include "tests/unit/storage/counted_store.hpp"
#include "tests/unit/storage/small_run.hpp"
#include "tests/unit/storage/temporary_folder.hpp"

namespace gleaner {
namespace {

using test::require_ok;
using test::require_value;

constexpr Instant kBegin{};

// A small run in a folder, which is held as a master holds it.
struct RunInFolder {
  RunInFolder() : folder(require_value(hold_store_folder(path))) {
    const RunIdentity identity = test::small_identity();
    run = require_value(RunStore::create_or_open(require_value(open_rocks_store(folder, {})),
                                                 identity, test::small_label_counts(identity)));
  }

  // Trains a round that the key {9, round} took part in unaudited.
  void train_round() {
    const RoundIndex round = run->checkpoint();
    require_ok(test::stage_round(*run, round));
    require_ok(run->begin_fold(round, test::make_history(round + 1),
                               test::make_receipts(run->shard_map(), round)));
    while (!require_value(run->step_fold())) {
    }
  }

  // Returns what the console was told.
  std::vector<LogLine> undo(const std::vector<KeyId>& liars) {
    std::vector<LogLine> told;
    Console console(
        stdout, stdout, {}, [] { return 80U; }, [] { return kBegin; });
    console.tell([&](const RunEvent& event) {
      if (const auto* line = std::get_if<LogLine>(&event)) told.push_back(*line);
    });
    require_ok(undo_work_of(path, *run, liars, console));
    return told;
  }

  test::TemporaryFolder place;
  std::string path = place.path() + "/run";
  std::shared_ptr<HeldFolder> folder;
  std::unique_ptr<RunStore> run;
};

struct Told {
  std::function<void(RunEvent)> listener() {
    return [this](RunEvent event) {
      const std::lock_guard guard(lock);
      events.push_back(std::move(event));
    };
  }

  std::mutex lock;
  std::vector<RunEvent> events;
};

}  // namespace

TEST_CASE("backup keeper: it copies when it is time, and the last checkpoint at the end",
          "[master]") {
  RunInFolder store;
  store.train_round();
  Told told;
  const MasterConfig::Backup config{store.place.path() + "/backups", 10, 1, {}};
  {
    BackupKeeper keeper(config, told.listener(), kBegin);
    keeper.folded(*store.run, kBegin + std::chrono::minutes(9));
    CHECK(told.events.empty());
    keeper.folded(*store.run, kBegin + std::chrono::minutes(10));
    keeper.finish(*store.run);
    REQUIRE(told.events.size() == 1);  // the last checkpoint was backed up already
    CHECK(std::get<BackedUp>(told.events[0]).checkpoint == 1);
  }
  store.train_round();
  BackupKeeper(config, told.listener(), kBegin).finish(*store.run);
  REQUIRE(told.events.size() == 2);
  const auto& last = std::get<BackedUp>(told.events[1]);
  CHECK(last.backup == 2);
  CHECK(last.checkpoint == 2);
  CHECK(last.kept == 1);
}

TEST_CASE("backup keeper: a folder that cannot be used is a warning", "[master]") {
  RunInFolder store;
  store.train_round();
  Told told;
  const std::string file = store.place.path() + "/file";
  std::ofstream(file) << "no folder";
  BackupKeeper({file, 0, 3, {}}, told.listener(), kBegin).finish(*store.run);
  REQUIRE(told.events.size() == 1);
  const auto& line = std::get<LogLine>(told.events[0]);
  CHECK(line.level == LogLevel::kWarning);
  CHECK_THAT(line.message, Catch::Contains("no backup was made: "));
}

TEST_CASE("checkpoints to go back to: few are kept, and no way back is long", "[master]") {
  for (RoundIndex now = 1; now <= 300; ++now) {
    std::vector<RoundIndex> kept;
    for (RoundIndex c = 0; c <= now; ++c) {
      if (is_kept_to_go_back(c, now)) kept.push_back(c);
    }
    CHECK(kept.front() == 0);
    CHECK(kept.back() == now);
    CHECK(kept.size() <= 20);
    for (RoundIndex undone = 1; undone <= now; ++undone) {
      RoundIndex best = 0;
      for (const RoundIndex c : kept) best = c <= now - undone ? c : best;
      CHECK(now - best <= 4 * undone);
    }
  }
}

TEST_CASE("checkpoints to go back to: what a liar did unaudited is undone, and no more",
          "[master]") {
  RunInFolder store;
  require_ok(keep_to_go_back(*store.folder, 0));
  for (RoundIndex checkpoint = 1; checkpoint <= 4; ++checkpoint) {
    store.train_round();
    require_ok(keep_to_go_back(*store.folder, checkpoint));
  }
  CHECK(has_kept_to_go_back(store.path));
  CHECK(store.undo({{77, 77}}).empty());
  CHECK(store.run->checkpoint() == 4);
  const auto told = store.undo({{9, 3}});  // took part in round 3
  REQUIRE(told.size() == 1);
  CHECK_THAT(told[0].message, Catch::Contains("the run goes back to checkpoint "));
  CHECK(store.run->checkpoint() <= 3);
  CHECK(store.run->checkpoint() >= 2);
  drop_kept_to_go_back(store.path);
  CHECK_FALSE(has_kept_to_go_back(store.path));
}

TEST_CASE("checkpoints to go back to: without one, a person is told what to do", "[master]") {
  RunInFolder store;
  store.train_round();
  const auto told = store.undo({{9, 0}});
  REQUIRE(told.size() == 1);
  CHECK(told[0].level == LogLevel::kError);
  CHECK_THAT(told[0].message, Catch::Contains("restore a backup"));
  CHECK(store.run->checkpoint() == 1);
}

TEST_CASE("best checkpoint: a better one is kept, and the history is read once", "[master]") {
  const test::TemporaryFolder place;
  const auto folder = require_value(hold_store_folder(place.path() + "/run"));
  const RunIdentity identity = test::small_identity();
  std::size_t reads = 0;
  const auto run = require_value(RunStore::create_or_open(
      std::make_unique<test::CountedStore>(require_value(open_rocks_store(folder, {})), reads),
      identity, test::small_label_counts(identity)));
  BestCheckpoint best(*folder, *run);
  const auto keeps_next = [&](double p_at_1) {
    const RoundIndex round = run->checkpoint();
    require_ok(test::stage_round(*run, round));
    require_ok(run->fold(round, test::make_history(round + 1)));
    RoundRecord record = test::make_history(round + 1);
    record.evaluated = 10;
    record.precision.p[0] = p_at_1;
    require_ok(run->put_history(record));
    reads = 0;
    return require_value(best.keep_if_best());
  };
  CHECK(keeps_next(0.5));
  CHECK_FALSE(keeps_next(0.25));
  CHECK(reads == 1);
  CHECK(kept_best(folder->path(), *run, 1) == kept_path(folder->path(), "best"));
  CHECK(keeps_next(0.75));
  CHECK(reads == 1);
  CHECK(kept_best(folder->path(), *run, 1).empty());
}

}  // namespace gleaner

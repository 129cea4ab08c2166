// No room on the disk: nothing is written, and what was asked for can be asked for again.
#include <catch2/catch.hpp>
#include <filesystem>
#include <functional>

#include "storage/engine/memory_store.hpp"
#include "storage/engine/rocks_store.hpp"
#include "tests/unit/storage/check_result.hpp"
#include "tests/unit/storage/small_run.hpp"
#include "tests/unit/storage/temporary_folder.hpp"

namespace gleaner {
namespace {

using test::check_error;
using test::require_ok;
using test::require_value;

constexpr RoundIndex kRoundsStored = 3;

std::unique_ptr<RunStore> open_run(std::unique_ptr<Store> store) {
  const RunIdentity identity = test::small_identity();
  return require_value(
      RunStore::create_or_open(std::move(store), identity, test::small_label_counts(identity)));
}

// Does `action` on a full disk, which refuses it, and again with room.
void refused_then_done(MemoryStore& disk, const std::function<Result<void>()>& action) {
  disk.fill_after(0);
  const std::uint64_t writes = disk.writes();
  check_error(action(), ErrorCode::kDiskFull, "full");
  CHECK(disk.writes() == writes);
  disk.make_room();
  require_ok(action());
}

TEST_CASE("disk full: every write of a run is refused once, and the model is the same",
          "[storage]") {
  MemoryStore calm;
  const auto expected = open_run(calm.share());
  require_ok(test::train_to(*expected, kRoundsStored));

  MemoryStore disk;
  const auto run = open_run(disk.share());
  const ShardMap& map = run->shard_map();
  refused_then_done(disk, [&]() -> Result<void> {
    const auto epochs = run->reserve_lease_epochs(1);
    return epochs ? Result<void>() : Result<void>(epochs.error());
  });
  for (RoundIndex round = 0; round < kRoundsStored; ++round) {
    for (std::uint32_t s = 0; s < map.shard_count(); ++s) {
      const auto parts = test::cut(map, ShardId{s}, test::make_update(map, ShardId{s}, round), 2);
      for (std::uint32_t part = 0; part < 2; ++part) {
        refused_then_done(disk,
                          [&] { return run->stage(round, ShardId{s}, part, 2, parts[part]); });
      }
    }
    refused_then_done(disk, [&] { return run->fold(round, test::make_history(round + 1)); });
    CHECK(run->checkpoint() == round + 1);
  }
  refused_then_done(disk, [&] { return run->put_history(test::make_history(kRoundsStored)); });
  CHECK(require_value(run->checkpoint_digest()) == require_value(expected->checkpoint_digest()));
}

TEST_CASE("disk full: a fold counts although there is no room to clear away behind it",
          "[storage]") {
  MemoryStore disk;
  const auto run = open_run(disk.share());
  require_ok(test::stage_round(*run, 0));
  disk.fill_after(2);  // the decision and the fold
  require_ok(run->fold(0, test::make_history(1)));
  CHECK(run->checkpoint() == 1);
  disk.make_room();
  require_ok(test::train_to(*run, 2));
  // Leftovers went with the next round's.
  std::size_t staged = 0;
  require_ok(disk.scan(Table::kStaged, {}, {}, [&](ByteView, ByteView) { return ++staged > 0; }));
  CHECK(staged == 0);
}

TEST_CASE("disk full: what is staged is kept when there is no room to discard it", "[storage]") {
  MemoryStore disk;
  const auto run = open_run(disk.share());
  require_ok(test::stage_round(*run, 0));
  disk.fill_after(0);
  check_error(run->discard_staged(), ErrorCode::kDiskFull, "full");
  CHECK(require_value(run->is_staged(0, ShardId{0})));
  disk.make_room();
  require_ok(run->discard_staged());
  CHECK_FALSE(require_value(run->is_staged(0, ShardId{0})));
}

TEST_CASE("disk full: a store leaves the reserve free and says what it needs", "[storage]") {
  const test::TemporaryFolder folder;
  {
    const auto run = open_run(require_value(open_rocks_store(folder.path(), OpenMode::kReadWrite)));
    require_ok(test::train_to(*run, 1));
  }
  const auto space = std::filesystem::space(folder.path());
  {
    RocksStoreOptions options;
    options.reserve_bytes = 2 * space.capacity;
    auto store = require_value(open_rocks_store(folder.path(), OpenMode::kReadWrite, options));
    const auto run = require_value(RunStore::open(std::move(store)));
    for (int attempt = 0; attempt < 2; ++attempt) {
      check_error(test::stage_round(*run, 1), ErrorCode::kDiskFull,
                  "the disk of the store " + folder.path());
      check_error(run->snapshot(), ErrorCode::kDiskFull, "MiB are needed");
      check_error(run->reserve_lease_epochs(1), ErrorCode::kDiskFull, "MiB free");
    }
    // Reading goes on.
    require_value(run->checkpoint_digest());
  }
  const auto run = open_run(require_value(open_rocks_store(folder.path(), OpenMode::kReadWrite)));
  CHECK(run->checkpoint() == 1);
  require_ok(test::train_to(*run, 2));
}

}  // namespace
}  // namespace gleaner

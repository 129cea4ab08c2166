// Going back to a kept checkpoint: what was trained since is as if it had never been.
#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "storage/engine/memory_store.hpp"
#include "storage/engine/rocks_store.hpp"
#include "storage/keep/kept_checkpoints.hpp"
#include "storage/run_store.hpp"
#include "tests/unit/storage/check_result.hpp"
#include "tests/unit/storage/small_run.hpp"
#include "tests/unit/storage/temporary_folder.hpp"

namespace gleaner {
namespace {

using test::check_error;
using test::open_small;
using test::require_ok;
using test::require_value;
using test::small_identity;
using test::small_label_counts;

constexpr std::uint64_t kFalse = 2;  // the seed of what is undone

// Trains to checkpoint 2, and then on falsely.
std::unique_ptr<MemoryStore> go_astray(const MemoryStore& disk) {
  const auto run = open_small(disk);
  require_ok(test::train_to(*run, 2));
  auto kept = disk.copy();
  require_ok(run->cut_rates());
  for (RoundIndex round = 2; round < 4; ++round) {
    require_ok(test::stage_round(*run, round, kFalse));
    require_ok(run->begin_fold(round, test::make_history(round + 1),
                               test::make_receipts(run->shard_map(), round)));
    while (!require_value(run->step_fold())) {
    }
  }
  require_ok(test::stage_round(*run, 4, kFalse));
  return kept;
}

// At checkpoint 2 as if nothing had come after it, and able to go on.
void check_is_back(RunStore& run) {
  const MemoryStore honest_disk;
  const auto honest = open_small(honest_disk);
  require_ok(test::train_to(*honest, 2));
  CHECK(run.checkpoint() == 2);
  CHECK(run.rate_cuts().empty());
  CHECK(require_value(run.checkpoint_digest()) == require_value(honest->checkpoint_digest()));
  CHECK(require_value(run.history()).size() == 2);
  for (const RoundIndex round : {2u, 3u}) CHECK(require_value(run.receipts(round)) == Receipts());
  CHECK_FALSE(require_value(run.is_staged(4, ShardId{0})));
  require_ok(test::train_to(*honest, 5));
  require_ok(test::train_to(run, 5));
  CHECK(require_value(run.checkpoint_digest()) == require_value(honest->checkpoint_digest()));
}

TEST_CASE("go back: the run is where it was, and trains on from there", "[storage]") {
  MemoryStore disk;
  const auto kept_disk = go_astray(disk);
  const auto run = open_small(disk);
  const LeaseEpoch used = require_value(run->reserve_lease_epochs(10));
  const auto kept = require_value(RunStore::open(kept_disk->share()));
  SECTION("in this process") {
    require_ok(run->go_back(*kept));
    CHECK(raw(require_value(run->reserve_lease_epochs(1))) > raw(used));
    check_is_back(*run);
  }
  SECTION("after the power failed") {
    require_ok(run->go_back(*kept));
    disk.crash();
    check_is_back(*open_small(disk));
  }
  SECTION("to the beginning") {
    const MemoryStore new_disk;
    const auto beginning = open_small(new_disk);
    require_ok(run->go_back(*beginning));
    CHECK(run->checkpoint() == 0);
    CHECK(require_value(run->checkpoint_digest()) == require_value(beginning->checkpoint_digest()));
  }
}

TEST_CASE("go back: a failed write leaves the run where it was, or puts it back", "[storage]") {
  using FailedWrite = MemoryStore::FailedWrite;
  for (std::uint64_t write = 0; write < 3; ++write) {
    for (const FailedWrite outcome : {FailedWrite::kDropped, FailedWrite::kApplied}) {
      INFO("write " << write << (outcome == FailedWrite::kApplied ? ", applied" : ", dropped"));
      MemoryStore disk;
      const auto kept_disk = go_astray(disk);
      const auto kept = require_value(RunStore::open(kept_disk->share()));
      const std::string before = require_value(open_small(disk)->checkpoint_digest());
      {
        const auto run = open_small(disk);
        disk.fail_after(write, outcome);
        if (run->go_back(*kept)) CHECK(write == 2);
      }
      disk.crash();
      const auto run = open_small(disk);
      if (run->checkpoint() == 2) {
        check_is_back(*run);
      } else {
        CHECK(run->checkpoint() == 4);
        CHECK(require_value(run->checkpoint_digest()) == before);
        require_ok(run->go_back(*kept));
        check_is_back(*run);
      }
    }
  }
}

TEST_CASE("go back: on a disk, from a kept checkpoint", "[storage]") {
  const std::size_t bulk_bytes = GENERATE(kRocksBulkBytes, std::size_t{0});
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/run";
  const RunIdentity identity = small_identity();
  {
    const auto run = require_value(RunStore::create_or_open(
        require_value(open_rocks_store(path, OpenMode::kReadWrite, {.bulk_bytes = bulk_bytes})),
        identity, small_label_counts(identity)));
    require_ok(test::train_to(*run, 2));
    require_ok(keep_checkpoint(path, "two"));
    require_ok(test::train_to(*run, 4, kFalse));
    const auto kept = require_value(RunStore::open(
        require_value(open_rocks_store(kept_path(path, "two"), OpenMode::kReadOnly))));
    require_ok(run->go_back(*kept));
  }
  const auto run =
      require_value(RunStore::open(require_value(open_rocks_store(path, OpenMode::kReadWrite))));
  check_is_back(*run);
}

TEST_CASE("go back: another run, or a later checkpoint, is refused", "[storage]") {
  const MemoryStore disk;
  const auto run = open_small(disk);
  require_ok(test::train_to(*run, 1));
  RunIdentity other = small_identity();
  other.model.seed += 1;
  const MemoryStore other_disk;
  check_error(run->go_back(*open_small(other_disk, other)), ErrorCode::kIdentity, "another run");
  const MemoryStore later_disk;
  const auto later = open_small(later_disk);
  require_ok(test::train_to(*later, 2));
  check_error(run->go_back(*later), ErrorCode::kInvalidArgument, "ahead");
  CHECK(run->checkpoint() == 1);
}

}  // namespace
}  // namespace gleaner

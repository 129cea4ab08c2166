// A store that crashes at every single write of a short run, in turn, and goes on to the same
// model.
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "storage/engine/memory_store.hpp"
#include "tests/unit/storage/check_result.hpp"
#include "tests/unit/storage/small_run.hpp"

namespace gleaner {
namespace {

using test::require_ok;
using test::require_value;

constexpr RoundIndex kRounds = 3;

// What the outside was told before the crash.
struct Told {
  std::set<std::pair<RoundIndex, ShardId>> staged;
  RoundIndex checkpoint = 0;
  std::uint64_t lease_epochs_end = 1;
};

std::unique_ptr<RunStore> open_run(const MemoryStore& disk) {
  const RunIdentity identity = test::small_identity();
  auto run = RunStore::create_or_open(disk.share(), identity, test::small_label_counts(identity));
  return run ? std::move(*run) : nullptr;
}

// As a master writes: one round's commits come while the round before waits to be folded.
Result<void> write_run(RunStore& run, Told& told) {
  const ShardMap& map = run.shard_map();
  const auto epochs = run.reserve_lease_epochs(10);
  if (!epochs) return epochs.error();
  told.lease_epochs_end = raw(*epochs) + 10;
  for (RoundIndex round = run.checkpoint(); round < kRounds; ++round) {
    for (std::uint32_t s = 0; s < map.shard_count(); ++s) {
      const ShardId shard{s};
      const auto parts = test::cut(map, shard, test::make_update(map, shard, round), 2);
      if (auto first = run.stage(round, shard, 0, 2, parts[0], Durability::kLazy); !first) {
        return first;
      }
      if (auto last = run.stage(round, shard, 1, 2, parts[1]); !last) return last;
      told.staged.insert({round, shard});
    }
    if (auto put = run.put_accounts({VolunteerAccount{}}); !put) return put;
    if (auto folded = run.fold(round, test::make_history(round + 1)); !folded) return folded;
    told.checkpoint = round + 1;
  }
  return run.put_history(test::make_history(kRounds));
}

void check_after_crash(RunStore& run, const Told& told,
                       const std::map<RoundIndex, std::string>& calm) {
  // A fold that was not reported may have happened; one that was reported has.
  CHECK(run.checkpoint() >= told.checkpoint);
  CHECK(run.checkpoint() <= told.checkpoint + 1);
  CHECK(require_value(run.checkpoint_digest()) == calm.at(run.checkpoint()));
  for (const auto& [round, shard] : told.staged) CHECK(require_value(run.is_staged(round, shard)));
  CHECK(require_value(run.history()).size() == run.checkpoint());
  CHECK(raw(require_value(run.reserve_lease_epochs(1))) >= told.lease_epochs_end);
}

std::map<RoundIndex, std::string> calm_digests() {
  const MemoryStore disk;
  const auto run = open_run(disk);
  std::map<RoundIndex, std::string> digests;
  for (RoundIndex checkpoint = 0; checkpoint <= kRounds; ++checkpoint) {
    require_ok(test::train_to(*run, checkpoint));
    digests[checkpoint] = require_value(run->checkpoint_digest());
  }
  return digests;
}

void crash_at_every_write(MemoryStore::FailedWrite outcome, bool loses_unsynced,
                          bool discards_staged) {
  const std::map<RoundIndex, std::string> calm = calm_digests();
  bool has_finished = false;
  std::uint64_t crashes = 0;
  for (std::uint64_t write = 0; !has_finished; ++write) {
    INFO("the first failing write is " << write);
    MemoryStore disk;
    disk.fail_after(write, outcome);
    Told told;
    if (auto run = open_run(disk); run != nullptr) has_finished = write_run(*run, told).ok();
    if (loses_unsynced) {
      disk.crash();
    } else {
      disk.restart();
    }
    if (!has_finished) ++crashes;
    auto run = open_run(disk);
    REQUIRE(run != nullptr);
    check_after_crash(*run, told, calm);
    if (discards_staged) require_ok(run->discard_staged());
    Told rest;
    require_ok(write_run(*run, rest));
    CHECK(require_value(run->checkpoint_digest()) == calm.at(kRounds));
  }
  // Creation, lease epochs, and a round's stages, accounts, fold and clearing away; one more for
  // the history.
  CHECK(crashes == 2 + kRounds * (5 * 2 + 3) + 1);
}

TEST_CASE("crash: power fails at every write, and the model is the same", "[storage]") {
  for (const auto outcome :
       {MemoryStore::FailedWrite::kDropped, MemoryStore::FailedWrite::kApplied}) {
    for (const bool discards_staged : {false, true}) {
      crash_at_every_write(outcome, /*loses_unsynced=*/true, discards_staged);
    }
  }
}

TEST_CASE("crash: the process dies at every write, and the model is the same", "[storage]") {
  for (const auto outcome :
       {MemoryStore::FailedWrite::kDropped, MemoryStore::FailedWrite::kApplied}) {
    for (const bool discards_staged : {false, true}) {
      crash_at_every_write(outcome, /*loses_unsynced=*/false, discards_staged);
    }
  }
}

}  // namespace
}  // namespace gleaner

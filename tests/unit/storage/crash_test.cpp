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

// Everything that the outside was told before the crash.
struct Told {
  std::set<std::pair<RoundIndex, ShardId>> staged;
  RoundIndex checkpoint = 0;
  RoundIndex decided = 0;  // the checkpoint whose fold has begun
  std::uint64_t lease_epochs_end = 1;
};

std::unique_ptr<RunStore> open_run(const MemoryStore& disk) {
  const RunIdentity identity = test::small_identity();
  auto run = RunStore::create_or_open(disk.share(), identity, test::small_label_counts(identity));
  return run ? std::move(*run) : nullptr;
}

Result<void> step_to_end(RunStore& run) {
  while (true) {
    const Result<bool> folded = run.step_fold();
    if (!folded) return folded.error();
    if (*folded) return {};
  }
}

// Ways for a process to treat staged commits when it opens the store.
enum class AtStart { kKeep, kDiscard, kResumeFold, kKeepSettled };

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
      if (auto first = run.stage(round, shard, 0, 2, parts[0]); !first) return first;
      if (auto last = run.stage(round, shard, 1, 2, parts[1]); !last) return last;
      if (auto settled = run.settle(test::make_settled(round, shard)); !settled) return settled;
    }
    if (auto put = run.put_accounts({AccountRecord{}}); !put) return put;
    auto begun =
        run.begin_fold(round, test::make_history(round + 1), test::make_receipts(map, round));
    if (!begun) return begun;
    told.decided = round + 1;
    for (std::uint32_t s = 0; s < map.shard_count(); ++s) told.staged.insert({round, ShardId{s}});
    if (auto folded = step_to_end(run); !folded) return folded;
    told.checkpoint = round + 1;
  }
  return run.put_history(test::make_history(kRounds));
}

// Every folded round has its own.
void check_receipts(RunStore& run) {
  for (RoundIndex round = 0; round < run.checkpoint(); ++round) {
    Receipts receipts = require_value(run.receipts(round));
    if (round + 1 == run.checkpoint()) {
      const auto digests = require_value(run.shard_digests());
      for (Receipt& receipt : receipts.shards) {
        CHECK(receipt.digest == digests.at(raw(receipt.shard)));
      }
    }
    for (Receipt& receipt : receipts.shards) {
      CHECK(receipt.digest.rows > 0);
      receipt.digest = {};
    }
    CHECK(receipts == test::make_receipts(run.shard_map(), round));
  }
}

void check_after_crash(RunStore& run, const Told& told,
                       const std::map<RoundIndex, std::string>& calm) {
  // An unreported fold may have happened; a reported fold has.
  CHECK(run.checkpoint() >= told.checkpoint);
  CHECK(run.checkpoint() <= told.checkpoint + 1);
  CHECK(require_value(run.checkpoint_digest()) == calm.at(run.checkpoint()));
  for (const auto& [round, shard] : told.staged) CHECK(require_value(run.is_staged(round, shard)));
  CHECK(require_value(run.history()).size() == run.checkpoint());
  check_receipts(run);
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

void crash_at_every_write(MemoryStore::FailedWrite outcome, bool loses_unsynced, AtStart at_start) {
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
    if (at_start == AtStart::kResumeFold) {
      const bool is_open = told.decided > run->checkpoint();
      // The last write may have been the decision itself.
      const bool resumed = require_value(run->resume_fold());
      CHECK((resumed || !is_open));
      if (resumed) require_ok(step_to_end(*run));
      CHECK(run->checkpoint() >= told.decided);
      CHECK(require_value(run->checkpoint_digest()) == calm.at(run->checkpoint()));
      CHECK(require_value(run->history()).size() == run->checkpoint());
      check_receipts(*run);
    }
    if (at_start == AtStart::kKeepSettled) {
      const auto damaged = [](const Error& error) { FAIL(error.message); };
      require_value(run->keep_settled([](RoundIndex) { return false; }, damaged));
    } else if (at_start != AtStart::kKeep) {
      require_ok(run->discard_staged());
    }
    Told rest;
    require_ok(write_run(*run, rest));
    CHECK(require_value(run->checkpoint_digest()) == calm.at(kRounds));
  }
  // Creation, lease epochs, and a round's parts and records, accounts, decision, fold and clearing
  // away; one more for the history.
  CHECK(crashes == 2 + kRounds * (5 * 3 + 4) + 1);
}

constexpr AtStart kWays[] = {AtStart::kKeep, AtStart::kDiscard, AtStart::kResumeFold,
                             AtStart::kKeepSettled};

TEST_CASE("crash: power fails at every write, and the model is the same", "[storage]") {
  for (const auto outcome :
       {MemoryStore::FailedWrite::kDropped, MemoryStore::FailedWrite::kApplied}) {
    for (const AtStart at_start : kWays) {
      crash_at_every_write(outcome, /*loses_unsynced=*/true, at_start);
    }
  }
}

TEST_CASE("crash: the process dies at every write, and the model is the same", "[storage]") {
  for (const auto outcome :
       {MemoryStore::FailedWrite::kDropped, MemoryStore::FailedWrite::kApplied}) {
    for (const AtStart at_start : kWays) {
      crash_at_every_write(outcome, /*loses_unsynced=*/false, at_start);
    }
  }
}

TEST_CASE("crash: a loss of power leaves settled commits up to some write", "[storage]") {
  const std::string calm = calm_digests().at(kRounds);
  std::uint64_t writes = 1;
  for (std::uint64_t survivors = 0; survivors <= writes; ++survivors) {
    INFO(survivors << " writes have reached the disk");
    MemoryStore disk;
    std::map<std::uint64_t, std::pair<RoundIndex, ShardId>> settled;  // by the write
    {
      const auto run = open_run(disk);
      const ShardMap& map = run->shard_map();
      for (RoundIndex round = 0; round < 2; ++round) {
        for (std::uint32_t s = 0; s < map.shard_count(); ++s) {
          const ShardId shard{s};
          const auto parts = test::cut(map, shard, test::make_update(map, shard, round), 2);
          require_ok(run->stage(round, shard, 0, 2, parts[0]));
          require_ok(run->stage(round, shard, 1, 2, parts[1]));
          require_ok(run->settle(test::make_settled(round, shard)));
          settled[disk.unsynced()] = {round, shard};
        }
      }
    }
    writes = disk.unsynced();
    disk.crash(survivors);
    const auto run = open_run(disk);
    const auto damaged = [](const Error& error) { FAIL(error.message); };
    const auto kept = require_value(run->keep_settled([](RoundIndex) { return false; }, damaged));
    std::size_t expected = 0;
    for (const auto& [write, key] : settled) {
      if (write > survivors) break;
      REQUIRE(expected < kept.size());
      CHECK(kept[expected++] == test::make_settled(key.first, key.second));
    }
    CHECK(kept.size() == expected);
    Told rest;
    require_ok(write_run(*run, rest));
    CHECK(require_value(run->checkpoint_digest()) == calm);
  }
  CHECK(writes == 30);
}

}  // namespace
}  // namespace gleaner

// Commits that count, and stay when the master starts again.
#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "storage/engine/memory_store.hpp"
#include "storage/record.hpp"
#include "storage/run_store.hpp"
#include "tests/unit/storage/check_result.hpp"
#include "tests/unit/storage/small_run.hpp"

namespace gleaner {
namespace {

using test::check_error;
using test::make_history;
using test::make_settled;
using test::open_small;
using test::require_ok;
using test::require_value;

bool never(RoundIndex) {
  return false;
}

std::vector<SettledRound> keep(RunStore& run,
                               const std::function<bool(RoundIndex)>& ends = &never) {
  return require_value(run.keep_settled(ends, [](const Error& error) { FAIL(error.message); }));
}

std::size_t count_staged(const MemoryStore& disk, bool settled) {
  std::size_t records = 0;
  require_ok(disk.share()->scan(Table::kStaged, {}, {}, [&](ByteView key, ByteView) {
    records += (decode_staged_key(key)->part == kSettledPart) == settled ? 1 : 0;
    return true;
  }));
  return records;
}

// Stages and settles rounds [0, rounds) of all shards.
std::unique_ptr<RunStore> open_settled(const MemoryStore& disk, RoundIndex rounds) {
  auto run = open_small(disk);
  for (RoundIndex round = 0; round < rounds; ++round) {
    require_ok(test::stage_round(*run, round));
    require_ok(test::settle_round(*run, round));
  }
  return run;
}

}  // namespace

TEST_CASE("settled rounds: they stay when the store is opened again, and others do not",
          "[storage]") {
  const MemoryStore disk;
  ShardRows before;
  {
    const auto run = open_small(disk);
    for (const RoundIndex round : {0u, 1u, 2u}) require_ok(test::stage_round(*run, round));
    // In any order; some do not follow on what is kept.
    for (const auto& [round, shard] : std::vector<std::pair<RoundIndex, std::uint32_t>>{
             {1, 3}, {0, 3}, {0, 0}, {2, 0}, {1, 1}, {0, 4}, {2, 3}}) {
      require_ok(run->settle(make_settled(round, ShardId{shard})));
    }
    before = require_value(run->read_rows(ShardId{3}, 0, 9, 3));
  }
  const auto run = open_small(disk);
  CHECK(keep(*run) ==
        std::vector<SettledRound>{make_settled(0, ShardId{0}), make_settled(0, ShardId{3}),
                                  make_settled(0, ShardId{4}), make_settled(1, ShardId{3}),
                                  make_settled(2, ShardId{3})});
  CHECK(count_staged(disk, true) == 5);
  CHECK(require_value(run->read_rows(ShardId{3}, 0, 9, 3)) == before);
  for (std::uint32_t s = 0; s < 5; ++s) {
    CHECK(require_value(run->is_staged(0, ShardId{s})) == (s == 0 || s >= 3));
    CHECK(require_value(run->is_staged(2, ShardId{s})) == (s == 3));
  }
  const std::uint64_t staged = count_staged(disk, false);
  CHECK(keep(*run).size() == 5);
  CHECK(count_staged(disk, false) == staged);

  require_ok(test::train_to(*run, 4));
  const MemoryStore calm_disk;
  const auto calm = open_small(calm_disk);
  require_ok(test::train_to(*calm, 4));
  CHECK(require_value(run->checkpoint_digest()) == require_value(calm->checkpoint_digest()));
}

TEST_CASE("settled rounds: none is kept beyond the first that ends at a given checkpoint",
          "[storage]") {
  const RoundIndex end = GENERATE(1u, 2u, 3u);
  const MemoryStore disk;
  open_settled(disk, 3);
  const auto run = open_small(disk);
  const auto kept = keep(*run, [end](RoundIndex checkpoint) { return checkpoint >= end; });
  CHECK(kept.size() == std::size_t{5} * end);
  CHECK(kept.back().round + 1 == end);
  CHECK(require_value(run->is_staged(end - 1, ShardId{4})));
  CHECK_FALSE(require_value(run->is_staged(end, ShardId{4})));
}

TEST_CASE("settled rounds: only a whole commit is settled, and a folded one need not be",
          "[storage]") {
  const MemoryStore disk;
  const auto run = open_small(disk);
  const auto parts = test::cut(run->shard_map(), ShardId{1},
                               test::make_update(run->shard_map(), ShardId{1}, 0), 2);
  const std::string sentence = "shard 1 for round 0 is not staged as a whole";
  check_error(run->settle(make_settled(0, ShardId{1})), ErrorCode::kNotFound, sentence);
  require_ok(run->stage(0, ShardId{1}, 1, 2, parts[1]));
  check_error(run->settle(make_settled(0, ShardId{1})), ErrorCode::kNotFound, sentence);
  check_error(run->settle(make_settled(0, ShardId{9})), ErrorCode::kNotFound, "shard 9");
  require_ok(run->stage(0, ShardId{1}, 0, 2, parts[0]));
  require_ok(run->settle(make_settled(0, ShardId{1})));
  require_ok(test::train_to(*run, 1));
  const std::uint64_t writes = disk.writes();
  require_ok(run->settle(make_settled(0, ShardId{1})));
  CHECK(disk.writes() == writes);
}

TEST_CASE("settled rounds: their records go where the commits go", "[storage]") {
  const MemoryStore disk;
  const auto run = open_settled(disk, 3);
  REQUIRE(count_staged(disk, true) == 15);
  SECTION("with a shard's round and later ones") {
    require_ok(run->drop_staged(1, ShardId{2}));
    CHECK(count_staged(disk, true) == 13);
    const auto parts = test::cut(run->shard_map(), ShardId{2},
                                 test::make_update(run->shard_map(), ShardId{2}, 1), 2);
    require_ok(run->stage(1, ShardId{2}, 0, 2, parts[0]));
    require_ok(run->stage(1, ShardId{2}, 1, 2, parts[1]));
    const auto kept = keep(*run);
    CHECK(kept.size() == 13);
    CHECK(std::ranges::count(kept, ShardId{2}, &SettledRound::shard) == 1);
  }
  SECTION("with a fold") {
    require_ok(run->fold(0, make_history(1)));
    CHECK(count_staged(disk, true) == 10);
    const auto kept = keep(*run);
    CHECK(kept.size() == 10);
    CHECK(kept.front() == make_settled(1, ShardId{0}));
  }
  SECTION("with all") {
    require_ok(run->discard_staged());
    CHECK(count_staged(disk, true) == 0);
  }
  SECTION("with the rates") {
    require_ok(run->cut_rates());
    CHECK(count_staged(disk, true) == 0);
  }
  SECTION("back to a kept checkpoint") {
    const MemoryStore kept_disk;
    require_ok(run->go_back(*open_settled(kept_disk, 2)));
    CHECK(count_staged(disk, true) == 0);
    CHECK(keep(*run).empty());
    require_ok(test::stage_round(*run, 0));
    require_ok(test::settle_round(*run, 0));
    CHECK(keep(*run).size() == 5);
  }
}

TEST_CASE("settled rounds: a record whose commit is not whole counts for nothing and is cleared",
          "[storage]") {
  const MemoryStore disk;
  open_settled(disk, 2);
  WriteBatch batch;
  // Shard 1 has two parts, shard 3 one.
  batch.erase(Table::kStaged, encode_staged_key({0, ShardId{1}, 1}));
  batch.erase(Table::kStaged, encode_staged_key({1, ShardId{3}, 0}));
  for (const StagedKey& at :
       {StagedKey{2, ShardId{0}, kSettledPart}, StagedKey{7, ShardId{4}, kSettledPart}}) {
    const StagedKeyBytes key = encode_staged_key(at);
    batch.put(Table::kStaged, key, seal_record(Table::kStaged, key, as_bytes("{}")));
  }
  require_ok(disk.share()->write(std::move(batch), Durability::kSync));
  const auto run = open_small(disk);
  const auto kept = keep(*run);
  CHECK(kept.size() == 7);
  for (const SettledRound& settled : kept) {
    CHECK(settled.shard != ShardId{1});
    CHECK((settled.shard != ShardId{3} || settled.round == 0));
  }
  CHECK(count_staged(disk, true) == 7);
  require_ok(test::stage_round(*run, 0));
  require_ok(test::train_to(*run, 2));
}

TEST_CASE("settled rounds: a commit whose parts overlap is dropped, since no fold could take it",
          "[storage]") {
  const MemoryStore disk;
  const auto run = open_small(disk);
  const SparseUpdate update = test::make_update(run->shard_map(), ShardId{0}, 0);
  require_ok(run->stage(0, ShardId{0}, 0, 2, update));
  require_ok(run->stage(0, ShardId{0}, 1, 2, update));
  require_ok(run->settle(make_settled(0, ShardId{0})));
  std::size_t damages = 0;
  const auto kept = require_value(run->keep_settled(&never, [&](const Error& error) {
    CHECK(error.code == ErrorCode::kCorrupt);
    ++damages;
  }));
  CHECK(kept.empty());
  CHECK(damages == 1);
}

TEST_CASE("settled rounds: a fold that was decided and not done is decided again", "[storage]") {
  const MemoryStore disk;
  {
    const auto run = open_small(disk);
    require_ok(test::stage_round(*run, 0));
    require_ok(run->settle(make_settled(0, ShardId{0})));
    require_ok(run->begin_fold(0, make_history(1)));
  }
  {
    const auto run = open_small(disk);
    CHECK(keep(*run).size() == 1);
    require_ok(test::stage_round(*run, 0));
  }
  // The commits that have come since may not be audited yet.
  CHECK_FALSE(require_value(open_small(disk)->resume_fold()));
}

}  // namespace gleaner

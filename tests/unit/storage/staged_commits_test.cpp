// Commits that are staged: what is kept of them, and how much.
#include <algorithm>
#include <catch2/catch.hpp>

#include "storage/engine/memory_store.hpp"
#include "tests/unit/storage/check_result.hpp"
#include "tests/unit/storage/small_run.hpp"

namespace gleaner {

using test::check_error;
using test::make_update;
using test::open_small;
using test::require_ok;
using test::require_value;
using test::train_to;

TEST_CASE("run store: what is staged of a shard makes room for another commit", "[storage]") {
  const MemoryStore disk;
  const auto run = open_small(disk);
  const ShardId shard{1};
  const auto parts = test::cut(run->shard_map(), shard, make_update(run->shard_map(), shard, 0), 2);
  require_ok(test::stage_round(*run, 0, 1));
  require_ok(run->stage(1, shard, 0, 2, parts[0]));
  const std::uint64_t writes = disk.writes();
  require_ok(run->drop_staged(2, shard));
  CHECK(disk.writes() == writes);
  require_ok(run->drop_staged(0, shard));
  for (const RoundIndex round : {0u, 1u}) {
    CHECK_FALSE(require_value(run->is_staged(round, shard)));
    // With other parts than before, and other rows.
    require_ok(run->stage(round, shard, 0, 1, parts[1]));
    CHECK(require_value(run->is_staged(round, shard)));
  }
  CHECK(require_value(run->is_staged(0, ShardId{0})));
}

TEST_CASE("run store: a commit has no more parts than its shard has rows", "[storage]") {
  const MemoryStore disk;
  const auto run = open_small(disk);
  const ShardId shard{1};
  const std::uint32_t rows = run->shard_map().row_count(shard);
  const SparseUpdate update = make_update(run->shard_map(), shard, 0);
  check_error(run->stage(0, shard, 0, rows + 1, update), ErrorCode::kProtocol, "part 0 of");
  require_ok(run->stage(0, shard, 0, rows, update));
}

TEST_CASE("run store: it says whether the checkpoint holds rows", "[storage]") {
  const MemoryStore disk;
  const auto run = open_small(disk);
  const ShardMap& map = run->shard_map();
  REQUIRE(train_to(*run, 1));
  const std::vector<std::uint32_t> stored = make_update(map, ShardId{0}, 0).rows;
  REQUIRE(run->has_rows(ShardId{0}, stored).value());
  REQUIRE(run->has_rows(ShardId{0}, {}).value());
  for (std::uint32_t row = 0; row < map.row_count(ShardId{0}); ++row) {
    const std::vector<std::uint32_t> one{row};
    REQUIRE(run->has_rows(ShardId{0}, one).value() == (std::ranges::count(stored, row) == 1));
  }
}

}  // namespace gleaner

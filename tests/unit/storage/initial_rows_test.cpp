// Runs that begin with rows of a model instead of rows from the seed.
#include <catch2/catch.hpp>
#include <numeric>

#include "storage/engine/memory_store.hpp"
#include "storage/run_store.hpp"
#include "tests/unit/storage/check_result.hpp"
#include "tests/unit/storage/small_run.hpp"

namespace gleaner {
namespace {

using test::require_ok;
using test::require_value;

RunIdentity identity() {
  RunIdentity identity = test::small_identity();
  identity.model.initial_fingerprint = 0xabc;
  return identity;
}

// The first `count` rows of every shard.
InitialRows first_rows(float value, std::uint32_t count = 1) {
  return [value, count](ShardId shard, std::uint32_t begin, std::uint32_t) -> Result<ShardRows> {
    const ShardMap map(identity().model);
    ShardRows rows;
    if (begin != 0) return rows;
    rows.rows.resize(count);
    std::iota(rows.rows.begin(), rows.rows.end(), 0U);
    rows.values.assign(count * map.row_width(shard), value);
    rows.states.assign(count, 0.0F);
    return rows;
  };
}

Result<std::unique_ptr<RunStore>> open(MemoryStore& disk, const InitialRows& rows) {
  return RunStore::create_or_open(disk.share(), identity(), test::small_label_counts(identity()),
                                  rows);
}

}  // namespace

TEST_CASE("initial rows: a new run has them from its making on, and keeps them", "[storage]") {
  MemoryStore disk;
  std::string digest;
  {
    const auto run = require_value(open(disk, first_rows(0.5F)));
    REQUIRE(run->checkpoint() == 0);
    const ShardRows rows = require_value(run->read_rows(ShardId{0}, 0, 2, 0));
    REQUIRE(rows.rows == std::vector<std::uint32_t>{0});
    REQUIRE(rows.values.front() == 0.5F);
    for (const ShardDigest& shard : require_value(run->shard_digests())) REQUIRE(shard.rows == 1);
    digest = require_value(run->checkpoint_digest());
  }
  // A later opener brings no rows, or other rows: the run keeps its first rows.
  REQUIRE(require_value(require_value(open(disk, {}))->checkpoint_digest()) == digest);
  REQUIRE(require_value(require_value(open(disk, first_rows(2)))->checkpoint_digest()) == digest);
  MemoryStore other;
  REQUIRE(require_value(require_value(open(other, first_rows(2)))->checkpoint_digest()) != digest);
}

TEST_CASE("initial rows: without them such a run is not made, and others are other runs",
          "[storage]") {
  MemoryStore disk;
  test::check_error(open(disk, {}), ErrorCode::kInvalidArgument, "is missing");
  require_value(open(disk, first_rows(0.5F)));
  const RunIdentity plain = test::small_identity();
  const auto refused =
      RunStore::create_or_open(disk.share(), plain, test::small_label_counts(plain));
  REQUIRE_FALSE(refused.ok());
  REQUIRE(refused.error().code == ErrorCode::kIdentity);
  REQUIRE_THAT(refused.error().message,
               Catch::Contains("initial_fingerprint is none here and 0000000000000abc"));
}

TEST_CASE("initial rows: a making that failed leaves nothing", "[storage]") {
  MemoryStore whole;
  const std::string digest =
      require_value(require_value(open(whole, first_rows(0.5F)))->checkpoint_digest());
  MemoryStore disk;
  disk.fail_after(0);
  REQUIRE_FALSE(open(disk, first_rows(7, 2)).ok());
  disk.restart();
  const auto unreadable = [](ShardId shard, std::uint32_t begin,
                             std::uint32_t end) -> Result<ShardRows> {
    if (raw(shard) < 2) return first_rows(7, 2)(shard, begin, end);
    return Error{ErrorCode::kIo, "the model cannot be read on"};
  };
  test::check_error(open(disk, unreadable), ErrorCode::kIo, "read on");
  REQUIRE(disk.writes() == 0);
  const auto run = require_value(open(disk, first_rows(0.5F)));
  REQUIRE(require_value(run->checkpoint_digest()) == digest);
}

}  // namespace gleaner

// Records that a run's store keeps besides rows: history, halved rates, accounts, lease epochs.
#include <catch2/catch.hpp>
#include <limits>
#include <set>

#include "common/model/run_plan.hpp"
#include "storage/engine/memory_store.hpp"
#include "storage/run_records.hpp"
#include "storage/run_store.hpp"
#include "tests/unit/storage/check_result.hpp"
#include "tests/unit/storage/small_run.hpp"

namespace gleaner {
namespace {

using test::check_error;
using test::make_history;
using test::make_update;
using test::open_small;
using test::require_ok;
using test::require_value;
using test::small_identity;

TEST_CASE("run store: history is kept by checkpoint and replaced", "[storage]") {
  const MemoryStore disk;
  const auto run = open_small(disk);
  require_ok(test::train_to(*run, 3));
  const std::vector<RoundRecord> before = require_value(run->history());
  RoundRecord evaluated = before.at(1);
  evaluated.evaluated = 17;
  evaluated.precision.p[0] = 0.5;
  require_ok(run->put_history(evaluated));
  const auto again = require_value(RunStore::open(disk.share()));
  CHECK(require_value(again->history()) ==
        std::vector<RoundRecord>{before.at(0), evaluated, before.at(2)});
  CHECK(before.at(0).rows_digest != before.at(2).rows_digest);
}

TEST_CASE("run store: figures of another test file are refused, and not shown", "[storage]") {
  const MemoryStore disk;
  RunIdentity first = small_identity();
  RunIdentity second = first;
  set_test_file(first, "first.txt", 1);
  set_test_file(second, "second.txt", 2);
  {
    const auto run = open_small(disk, first);
    require_ok(test::train_to(*run, 1));
    RoundRecord evaluated = require_value(run->history()).at(0);
    evaluated.evaluated = 17;
    evaluated.precision.p[0] = 0.5;
    require_ok(run->put_history(evaluated));
  }
  const auto open = [&](const RunIdentity& identity) {
    return RunStore::create_or_open(disk.share(), identity, test::small_label_counts(identity));
  };
  const auto refused = open(second);
  check_error(refused, ErrorCode::kIdentity, "first.txt");
  check_error(refused, ErrorCode::kIdentity, "second.txt");
  CHECK(require_value(require_value(open(small_identity()))->history()).at(0).evaluated == 17);
  second.begins_new_test = true;
  CHECK(require_value(require_value(open(second))->history()).at(0).evaluated == 0);
  second.begins_new_test = false;
  CHECK(open(second).ok());
  first.begins_new_test = true;
  CHECK(require_value(require_value(open(first))->history()).at(0).precision.p[0] == 0.5);
}

TEST_CASE("run store: a cut of the rates lasts, and drops what was trained before it",
          "[storage]") {
  MemoryStore disk;
  const MemoryStore plain_disk;
  const auto plain = open_small(plain_disk);
  require_ok(test::train_to(*plain, 1));
  const std::string digest_before = require_value(plain->checkpoint_digest());
  require_ok(test::train_to(*plain, 2));
  BatchIndex next = 0;
  {
    const auto run = open_small(disk);
    require_ok(test::train_to(*run, 1));
    require_ok(test::stage_round(*run, 1));
    CHECK(run->rate_cuts().empty());
    require_ok(run->cut_rates());
    require_ok(run->cut_rates());
    next = RunPlan(run->identity().model).round_begin(1);
    CHECK(run->rate_cuts() == std::vector<BatchIndex>{next, next});
    CHECK_FALSE(require_value(run->is_staged(1, ShardId{0})));
  }
  disk.crash();
  const auto run = open_small(disk);
  CHECK(run->checkpoint() == 1);
  CHECK(run->rate_cuts() == std::vector<BatchIndex>{next, next});
  CHECK_FALSE(require_value(run->is_staged(1, ShardId{0})));
  // It is part of what a later checkpoint is, and not of one before.
  CHECK(require_value(run->checkpoint_digest()) == digest_before);
  require_ok(test::train_to(*run, 2));
  CHECK(require_value(run->checkpoint_digest()) != require_value(plain->checkpoint_digest()));
  CHECK(run->rate_cuts() == std::vector<BatchIndex>{next, next});
  const auto history = require_value(run->history());
  CHECK(history.at(0).rate_cuts == 0);
  CHECK(history.at(1).rate_cuts == 2);
}

TEST_CASE("run store: accounts are kept by identity", "[storage]") {
  const MemoryStore disk;
  const auto run = open_small(disk);
  AccountRecord atlas;
  atlas.identity = {9, 1};
  atlas.name = "atlas";
  atlas.units = 3;
  AccountRecord bilbo;
  bilbo.identity = {2, ~std::uint64_t{0}};
  bilbo.name = "bilbo";
  require_ok(run->put_accounts({atlas, bilbo}));
  require_value(run->reserve_lease_epochs(5));
  atlas.units = 4;
  require_ok(run->put_accounts({atlas}));
  CHECK(require_value(run->accounts()) == std::vector<AccountRecord>{bilbo, atlas});
}

TEST_CASE("run store: lease epochs are never handed out twice", "[storage]") {
  MemoryStore disk;
  {
    const auto run = open_small(disk);
    CHECK(raw(require_value(run->reserve_lease_epochs(100))) == 1);
    CHECK(raw(require_value(run->reserve_lease_epochs(1))) == 101);
  }
  disk.crash();
  CHECK(raw(require_value(open_small(disk)->reserve_lease_epochs(1))) == 102);
}

}  // namespace
}  // namespace gleaner

// Each checker says so when what it guards is broken: fed by hand with events that must not be.
#include <catch2/catch.hpp>

#include "common/work/quantized_activations.hpp"
#include "schema/versions.hpp"
#include "storage/engine/memory_store.hpp"
#include "tests/sim/checkers/checker.hpp"
#include "tests/sim/fed_checkers.hpp"
#include "tests/sim/small_world.hpp"
#include "tests/support/tiny_run.hpp"
#include "tests/unit/storage/check_result.hpp"
#include "tests/unit/storage/small_run.hpp"

namespace gleaner::sim {

TEST_CASE("checkers: a shard that is lent twice is seen", "[sim]") {
  Fed fed;
  const auto checker = make_lease_checker(fed.log, {});
  checker->effect(send(kAnn, Welcome{}));
  checker->effect(send(kBob, Welcome{}));
  checker->effect(send(kAnn, grant(0, 1)));
  checker->effect(send(kBob, grant(1, 2)));
  REQUIRE(fed.first_violation().empty());
  checker->effect(send(kBob, grant(0, 3)));
  REQUIRE(fed.first_violation() == "leases: shard 0 is lent a second time");
}

TEST_CASE("checkers: an epoch that comes again after a restart is seen", "[sim]") {
  Fed fed;
  const auto checker = make_lease_checker(fed.log, {});
  checker->effect(send(kAnn, Welcome{}));
  checker->effect(send(kAnn, grant(0, 9)));
  checker->master_gone();
  checker->effect(send(kAnn, Welcome{}));
  checker->effect(send(kAnn, grant(0, 9)));
  REQUIRE(fed.first_violation() == "leases: epoch 9 of shard 0 after epoch 9");
}

TEST_CASE("checkers: a lease for somebody who has gone is seen", "[sim]") {
  Fed fed;
  const auto checker = make_lease_checker(fed.log, {});
  checker->effect(send(kAnn, Welcome{}));
  checker->event(SessionClosed{kAnn, "gone"});
  checker->effect(send(kAnn, grant(0, 1)));
  REQUIRE(fed.first_violation() == "leases: shard 0 is lent to a session that is not there");
}

TEST_CASE("checkers: a lease that nobody was sent is seen", "[sim]") {
  Fed fed;
  Core master;
  const auto checker = make_lease_checker(fed.log, {});
  checker->state(master.core);
  REQUIRE(fed.first_violation().empty());
  master.join_ann();
  checker->state(master.core);
  REQUIRE(fed.first_violation() ==
          "leases: the core counts shard 0 as lent to a session that does not have it");
}

TEST_CASE("checkers: a batch that is applied twice, skipped or early is seen", "[sim]") {
  const auto first_violation = [](const std::vector<WorkerTask>& tasks) {
    Fed fed;
    fed.options.model.staleness = 1;
    const auto checker = make_batch_checker(fed.log, fed.options);
    checker->master_started({}, {});
    for (const WorkerTask& task : tasks) checker->effect(task);
    return fed.first_violation();
  };
  const BackwardTask first{0, 0, {}, {}};
  REQUIRE(first_violation({ForwardTask{0}, ForwardTask{1}, first, ForwardTask{2}}).empty());
  REQUIRE(first_violation({ForwardTask{1}}) == "batches: forward 1 where 0 is next");
  REQUIRE(first_violation({ForwardTask{0}, ForwardTask{1}, first, first}) ==
          "batches: update 0 where 1 is next");
  REQUIRE(first_violation({ForwardTask{0}, ForwardTask{1}, BackwardTask{1, 0, {}, {}}}) ==
          "batches: update 1 where 0 is next");
  REQUIRE(first_violation({ForwardTask{0}, ForwardTask{1}, ForwardTask{2}}) ==
          "batches: forward 2 sees the updates before 0, not before 1");
  REQUIRE(first_violation({CommitInputTask{0}}) ==
          "batches: the input layer commits round 0 before batch 0, where round 0 is next");
}

TEST_CASE("checkers: another gradient than the calm run's is seen", "[sim]") {
  Fed fed;
  Expected expected;
  const auto gradient = std::make_shared<const std::vector<std::int32_t>>(4, 1);
  expected.gradient_digests[{0, 0}] = digest_of(*gradient);
  expected.gradient_digests[{0, 1}] = digest_of(*gradient) + 1;
  fed.options.expected = &expected;
  const auto checker = make_batch_checker(fed.log, fed.options);
  checker->master_started({}, {});
  checker->working(WorkerTask(BackwardTask{0, 0, {}, gradient}));
  REQUIRE(fed.first_violation().empty());
  checker->working(WorkerTask(BackwardTask{1, 0, {}, gradient}));
  REQUIRE(fed.first_violation() == "batches: update 1 is not that of the calm run");
}

TEST_CASE("checkers: a shard that is ahead of the forward pass is seen", "[sim]") {
  Fed fed;
  Core master;
  const auto checker = make_batch_checker(fed.log, fed.options);
  master.commit_shard_0();
  checker->state(master.core);
  REQUIRE(fed.first_violation().empty());
  master.join_ann();
  checker->state(master.core);
  REQUIRE(fed.first_violation() == "batches: shard 0 is ahead of the forward pass");
}

TEST_CASE("checkers: a commit that counts before it is stored is seen", "[sim]") {
  Fed fed;
  const auto checker = make_commit_checker(fed.log);
  Core master;
  master.commit_shard_0();
  SECTION("stored") {
    Stored stored;
    stored.stage_shard_0(*checker);
    checker->state(master.core);
    REQUIRE(fed.first_violation().empty());
  }
  SECTION("not stored") {
    checker->state(master.core);
    REQUIRE(fed.first_violation() == "commits: round 0 of shard 0 counts before it is stored");
  }
}

TEST_CASE("checkers: a round that is folded without a shard is seen", "[sim]") {
  Fed fed;
  const auto checker = make_commit_checker(fed.log);
  Core master;
  master.handle(Folded{0, {}});
  checker->state(master.core);
  REQUIRE(fed.first_violation() == "commits: round 0 is folded without shard 0");
}

TEST_CASE("checkers: a checkpoint that is folded out of turn is seen", "[sim]") {
  Fed fed;
  const auto checker = make_checkpoint_checker(fed.log, fed.options);
  checker->event(Folded{0, {}});
  REQUIRE(fed.first_violation().empty());
  checker->event(Folded{0, {}});
  REQUIRE(fed.first_violation() == "checkpoints: round 0 folded where 1 is next");
}

TEST_CASE("checkers: a checkpoint that goes back, or is not the calm run's, is seen", "[sim]") {
  Fed fed;
  Stored stored;
  Expected expected;
  expected.digests[0] = require_value(stored.run->checkpoint_digest());
  fed.options.expected = &expected;
  const auto checker = make_checkpoint_checker(fed.log, fed.options);
  checker->store_opened(*stored.run);
  REQUIRE(fed.first_violation().empty());
  SECTION("behind what was folded, when it is opened") {
    checker->event(Folded{0, {}});
    checker->store_opened(*stored.run);
    REQUIRE(fed.first_violation() == "checkpoints: the store is at 0, but 1 was folded");
  }
  SECTION("behind what was folded, after any task") {
    checker->event(Folded{0, {}});
    checker->stored(StorageTask(ReadChunkTask{}), ChunkRead{}, *stored.run);
    REQUIRE(fed.first_violation() == "checkpoints: 0 after 1");
  }
  SECTION("another content") {
    require_ok(test::train_to(*stored.run, 1));
    expected.digests[1] = expected.digests[0];
    checker->stored(StorageTask(FoldTask{}), Folded{}, *stored.run);
    REQUIRE(fed.first_violation() == "checkpoints: 1 is not that of the calm run");
  }
  SECTION("half of it") {
    require_ok(test::train_to(*stored.run, 1));
    require_ok(stored.disk.share()->erase_range(Table::kCodes, {}, {}, Durability::kSync));
    checker->stored(StorageTask(FoldTask{}), Folded{}, *stored.run);
    REQUIRE_THAT(fed.first_violation(), Catch::StartsWith("checkpoints: "));
  }
}

TEST_CASE("checkers: units that end in no counter, or in two, are seen", "[sim]") {
  Fed fed;
  const auto checker = make_account_checker(fed.log, fed.options);
  Core master;
  master.join_ann();
  checker->event(SessionOpened{kAnn, "peer", kAnnsStanding});
  checker->effect(send(kAnn, Welcome{}));
  checker->state(master.core);
  REQUIRE(fed.first_violation().empty());
  TrainUnit unit;
  unit.unit = UnitId{1};
  checker->effect(send(kAnn, unit));
  SECTION("sent, and not counted as issued") {
    checker->state(master.core);
    REQUIRE(fed.first_violation() ==
            "accounts: ann was sent 1 units; its account says 0 issued, 0 applied, 0 refused, "
            "0 expired, and 1 are out");
  }
  const auto hand_in = [&](std::uint64_t applied, std::uint64_t expired) {
    AccountRecord account;
    account.identity = kAnnsStanding.identity;
    account.name = "ann";
    account.units_issued = 1;
    account.units = applied;
    account.units_expired = expired;
    account.is_final = true;
    checker->effect(StorageTask(FoldTask{0, {}, {account}}));
  };
  SECTION("final while it is out") {
    hand_in(0, 1);
    REQUIRE(fed.first_violation() ==
            "accounts: the final one of ann says 1 units issued and 1 ended; it was sent 1, and 1 "
            "are out");
  }
  SECTION("gone with its session") {
    checker->event(SessionClosed{kAnn, "gone"});
    SECTION("and expired") {
      hand_in(0, 1);
      REQUIRE(fed.first_violation().empty());
    }
    SECTION("and in no counter") {
      hand_in(0, 0);
      REQUIRE_FALSE(fed.first_violation().empty());
    }
    SECTION("and in two") {
      hand_in(1, 1);
      REQUIRE_FALSE(fed.first_violation().empty());
    }
  }
}

TEST_CASE("checkers: an account on record with more units ended than issued is seen", "[sim]") {
  Fed fed;
  const auto checker = make_account_checker(fed.log, fed.options);
  Stored stored;
  AccountRecord account;
  account.name = "ann";
  account.units_issued = account.units = 3;
  require_ok(stored.run->put_accounts({account}));
  checker->store_opened(*stored.run);
  REQUIRE(fed.first_violation().empty());
  account.units_refused = 1;
  require_ok(stored.run->put_accounts({account}));
  checker->store_opened(*stored.run);
  REQUIRE(fed.first_violation() == "accounts: ann is on record with more units ended than issued");
}

TEST_CASE("checkers: more work than is bounded is seen", "[sim]") {
  Fed fed;
  const auto checker = make_bounds_checker(fed.log, fed.options);
  TrainUnit unit;
  unit.batches.resize(3);
  for (std::uint64_t id = 1; fed.first_violation().empty() && id < 100; ++id) {
    unit.unit = UnitId{id};
    checker->effect(send(kAnn, unit));
  }
  REQUIRE(fed.first_violation() == "bounds: 18 batches out with one volunteer, at most 15");
  checker->bytes_waiting(std::size_t{65} << 20);
  checker->work_waiting(100'000);
  REQUIRE(fed.log.violations().size() == 3);
}

TEST_CASE("checkers: more reading than is bounded is seen", "[sim]") {
  Fed fed;
  const auto checker = make_bounds_checker(fed.log, fed.options);
  const Effect read = StorageTask(ReadChunkTask{kAnn, {}, 0, 0, 0, 0});
  for (int i = 0; i < 16; ++i) checker->effect(read);
  checker->event(ChunkRead{kAnn, {}, 0, {}});
  checker->effect(read);
  REQUIRE(fed.first_violation().empty());
  checker->effect(read);
  REQUIRE(fed.first_violation() == "bounds: 17 chunks being read for one volunteer, at most 16");
}

TEST_CASE("checkers: more of a volunteer's commits in memory than is bounded is seen", "[sim]") {
  Fed fed;
  const auto checker = make_bounds_checker(fed.log, fed.options);
  const Effect stage = StorageTask(StageTask{kAnn, ShardId{0}, 0, 0, 1, nullptr});
  for (std::uint32_t i = 0; i < kCommitPartsInFlight; ++i) checker->effect(stage);
  checker->event(Staged{kAnn, ShardId{0}, 0, 0});
  checker->effect(stage);
  REQUIRE(fed.first_violation().empty());
  checker->effect(stage);
  REQUIRE(fed.first_violation() ==
          "bounds: 17 parts of one volunteer's commits that wait for the store, at most 16");
}

TEST_CASE("checkers: a replay log that grows beyond its rounds is seen", "[sim]") {
  Fed fed;
  const auto checker = make_bounds_checker(fed.log, fed.options);
  Core master;
  master.join_ann();
  ForwardDone done;
  const RunPlan plan(tiny_model());
  auto codes = std::make_shared<QuantizedActivations>(tiny_codes(plan, 0, tiny_model().hidden));
  done.packed = std::make_shared<const Bytes>(pack(*codes));
  done.positives.offsets.assign(codes->examples + std::size_t{1}, 0);
  done.codes = std::move(codes);
  master.handle(std::move(done));
  checker->state(master.core);
  REQUIRE(fed.first_violation().empty());
  fed.options.model.round_batches = 0;
  checker->state(master.core);
  REQUIRE(fed.first_violation() == "bounds: 1 batches in the replay log, at most 0");
}

}  // namespace gleaner::sim

// Each checker says so when what it guards is broken: fed by hand with events that must not be.
#include <catch2/catch.hpp>

#include "tests/sim/checkers/checker.hpp"
#include "tests/sim/small_world.hpp"

namespace gleaner::sim {
namespace {

struct Fed {
  SimClock clock;
  SimLog log{clock, {}};
  ClusterOptions options;

  Fed() {
    SmallWorld world;
    options.model = world.model();
  }

  [[nodiscard]] std::string first_violation() const {
    return log.violations().empty() ? "" : log.violations().front();
  }
};

constexpr SessionId kAnn{1};
constexpr SessionId kBob{2};

LeaseGrant grant(std::uint32_t shard, std::uint64_t epoch) {
  LeaseGrant grant;
  grant.lease = {ShardId{shard}, LeaseEpoch{epoch}};
  return grant;
}

Effect send(SessionId to, Message message) {
  return Send{to, std::move(message)};
}

}  // namespace

TEST_CASE("checkers: a shard that is lent twice is seen", "[sim]") {
  Fed fed;
  const auto checker = make_lease_checker(fed.log);
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
  const auto checker = make_lease_checker(fed.log);
  checker->effect(send(kAnn, Welcome{}));
  checker->effect(send(kAnn, grant(0, 9)));
  checker->master_gone();
  checker->effect(send(kAnn, Welcome{}));
  checker->effect(send(kAnn, grant(0, 9)));
  REQUIRE(fed.first_violation() == "leases: epoch 9 of shard 0 after epoch 9");
}

TEST_CASE("checkers: a lease for somebody who has gone is seen", "[sim]") {
  Fed fed;
  const auto checker = make_lease_checker(fed.log);
  checker->effect(send(kAnn, Welcome{}));
  checker->event(SessionClosed{kAnn, "gone"});
  checker->effect(send(kAnn, grant(0, 1)));
  REQUIRE(fed.first_violation() == "leases: shard 0 is lent to a session that is not there");
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
  const BackwardTask first{0, {}, {}};
  REQUIRE(first_violation({ForwardTask{0}, ForwardTask{1}, first, ForwardTask{2}}).empty());
  REQUIRE(first_violation({ForwardTask{0}, ForwardTask{1}, first, first}) ==
          "batches: update 0 where 1 is next");
  REQUIRE(first_violation({ForwardTask{0}, ForwardTask{1}, BackwardTask{1, {}, {}}}) ==
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
  expected.gradient_digests[0] = digest_of(*gradient);
  expected.gradient_digests[1] = digest_of(*gradient) + 1;
  fed.options.expected = &expected;
  const auto checker = make_batch_checker(fed.log, fed.options);
  checker->master_started({}, {});
  checker->effect(WorkerTask(BackwardTask{0, {}, gradient}));
  REQUIRE(fed.first_violation().empty());
  checker->effect(WorkerTask(BackwardTask{1, {}, gradient}));
  REQUIRE(fed.first_violation() == "batches: update 1 is not that of the calm run");
}

TEST_CASE("checkers: an acknowledgement before the commit is durable is seen", "[sim]") {
  Fed fed;
  const auto checker = make_commit_checker(fed.log);
  checker->effect(send(kAnn, CommitAck{{ShardId{3}, LeaseEpoch{1}}, 2}));
  REQUIRE(fed.first_violation() ==
          "commits: round 2 of shard 3 is acknowledged before it is durable");
}

TEST_CASE("checkers: a checkpoint that is folded out of turn is seen", "[sim]") {
  Fed fed;
  const auto checker = make_checkpoint_checker(fed.log, fed.options);
  checker->event(Folded{0, {}});
  REQUIRE(fed.first_violation().empty());
  checker->event(Folded{0, {}});
  REQUIRE(fed.first_violation() == "checkpoints: round 0 folded where 1 is next");
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

}  // namespace gleaner::sim

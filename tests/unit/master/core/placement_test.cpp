#include "master/core/placement.hpp"

#include <catch2/catch.hpp>

#include "tests/support/tiny_run.hpp"

namespace gleaner {
namespace {

CoreConfig lending_config(AuditMode audit) {
  CoreConfig config = tiny_core_config();
  config.audit = audit;
  config.shard_bytes = 1000;
  config.input_shard_bytes = 62'500'000;  // 1,000 s over a thin line
  config.rejoin_grace = Millis(500);
  return config;
}

ResumePoint at_checkpoint(RoundIndex checkpoint) {
  ResumePoint resume;
  resume.checkpoint = checkpoint;
  return resume;
}

// Four output shards and volunteers, which hold nothing.
struct PlacementScene {
  explicit PlacementScene(RoundIndex checkpoint = 0, AuditMode audit = AuditMode::kOff)
      : run(tiny_model(), lending_config(audit), {}),
        pipeline(run.plan, run.map, checkpoint),
        placement(run, outbox, sessions, pipeline, input, at_checkpoint(checkpoint)) {
    outbox.set_now(Instant(Micros(1'000'000)));
  }

  RunSetup run;
  Outbox outbox;
  Sessions sessions{run, outbox, LeaseEpoch{1}};
  Pipeline pipeline;
  std::optional<InputStream> input;
  Placement placement;

  SessionId join(std::uint64_t id, std::uint64_t memory_bytes, float speed = 1) {
    Standing standing;
    standing.identity = {7, id};
    standing.is_trusted = standing.is_local = false;
    sessions.opened({SessionId{id}, "peer", standing});
    Hello hello;
    hello.memory_bytes = memory_bytes;
    hello.speed = speed;
    REQUIRE(sessions.activate(SessionId{id}, sessions.at(SessionId{id}), hello, 1, 0));
    placement.newcomer_came();
    return SessionId{id};
  }

  std::vector<LeaseGrant> lend() {
    (void)outbox.take();
    placement.look_again();
    placement.update();
    std::vector<LeaseGrant> grants;
    for (const Effect& effect : outbox.take()) {
      const auto* send = std::get_if<Send>(&effect);
      const auto* grant = send == nullptr ? nullptr : std::get_if<LeaseGrant>(&send->message);
      if (grant != nullptr) grants.push_back(*grant);
    }
    return grants;
  }

  void load(const LeaseGrant& grant) {
    const SessionId holder = placement.leases().at(grant.lease.shard).holder;
    REQUIRE(placement.receive(holder, ShardReady{grant.lease}));
  }
};

}  // namespace

TEST_CASE("placement: a shard of either layer is owed in the time that its own bytes take",
          "[placement]") {
  PlacementScene scene;
  SessionState& session = scene.sessions.at(scene.join(1, 1'000'000));
  const auto time_for = [&](std::uint32_t shard) {
    session.last_due = Instant{};
    const OutstandingWork outstanding =
        scene.placement.begin_outstanding(Obligation::kLoad, ShardId{shard}, SessionId{1}, session);
    return outstanding.due - outstanding.since;
  };
  const Micros output = time_for(0);
  REQUIRE(time_for(scene.run.map.output_shards()) - output >= Millis(999'000));
}

TEST_CASE("placement: a shadow takes the memory of an output shard, and bars its own shard",
          "[placement]") {
  PlacementScene scene;
  const SessionId ann = scene.join(1, 3999);  // room for three
  scene.placement.lend_shadow(ShardId{0}, ann, 0);
  REQUIRE_FALSE(scene.placement.has_room_for_shadows(ann, scene.sessions.at(ann), 3));
  REQUIRE(scene.placement.has_room_for_shadows(ann, scene.sessions.at(ann), 2));
  std::vector<ShardId> lent;
  for (const LeaseGrant& grant : scene.lend()) lent.push_back(grant.lease.shard);
  REQUIRE(lent == std::vector<ShardId>{ShardId{1}, ShardId{2}});
}

TEST_CASE("placement: what a stranger claims of its speed gives it no shards", "[placement]") {
  PlacementScene scene(0, AuditMode::kAll);
  const SessionId ann = scene.join(1, 10'000);
  const SessionId eve = scene.join(2, 10'000, 1e30F);
  REQUIRE(scene.lend().size() == 4);
  REQUIRE(scene.placement.leases().count_held_by(ann) == 2);
  REQUIRE(scene.placement.leases().count_held_by(eve) == 2);
}

TEST_CASE("placement: a stranger gets one shard first, and no more than a third later",
          "[placement]") {
  PlacementScene scene(0, AuditMode::kAll);
  const SessionId ann = scene.join(1, 10'000);
  const SessionId bob = scene.join(2, 10'000);
  const SessionId cid = scene.join(3, 10'000);
  // By speed ann would get three and cid one. The commits of ann and bob are durable.
  scene.sessions.at(ann).speed = 1000;
  scene.sessions.at(cid).speed = 500;
  scene.sessions.at(bob).speed = 50;
  ++scene.sessions.account(scene.sessions.at(ann)).commits;
  ++scene.sessions.account(scene.sessions.at(bob)).commits;
  REQUIRE(scene.lend().size() == 4);
  REQUIRE(scene.placement.leases().count_held_by(ann) == 2);
  REQUIRE(scene.placement.leases().count_held_by(bob) == 1);
  REQUIRE(scene.placement.leases().count_held_by(cid) == 1);
  // Alone it gets what nobody else takes.
  PlacementScene lonely(0, AuditMode::kAll);
  REQUIRE(lonely.lend().empty());
  const SessionId dan = lonely.join(4, 10'000);
  REQUIRE(lonely.lend().size() == 4);
  REQUIRE(lonely.placement.leases().count_held_by(dan) == 4);
}

TEST_CASE("placement: shards beyond everyone's memory stay free until somebody else comes",
          "[placement]") {
  PlacementScene scene;
  const SessionId ann = scene.join(1, 3999);
  REQUIRE(scene.lend().size() == 3);
  REQUIRE(scene.lend().empty());
  REQUIRE(scene.placement.leases().in_state(LeaseState::kFree).size() == 1);
  const SessionId bob = scene.join(2, 1000);
  REQUIRE(scene.lend().size() == 1);
  REQUIRE(scene.placement.leases().count_held_by(ann) == 3);
  REQUIRE(scene.placement.leases().count_held_by(bob) == 1);
}

TEST_CASE("placement: a hand-over waits until the commit that it stands on is durable",
          "[placement]") {
  PlacementScene scene;
  scene.join(1, 4000);
  ShardLease& lease = scene.placement.leases().at(ShardId{2});
  lease.handed_over = std::make_shared<HandedOver>();
  lease.handed_over->base_round = 1;
  lease.handed_over->next_batch = 4;
  lease.handed_over->parts.resize(2);
  REQUIRE(scene.lend().size() == 3);
  lease.committed = 1;
  const std::vector<LeaseGrant> grants = scene.lend();
  REQUIRE(grants.size() == 1);
  REQUIRE(grants[0].base_round == 1);
  REQUIRE(grants[0].next_batch == 4);
  REQUIRE(grants[0].chunks == grants[0].base_chunks + 2);
}

TEST_CASE("placement: a hand-over that durable commits have overtaken is dropped", "[placement]") {
  PlacementScene scene;
  scene.join(1, 4000);
  ShardLease& lease = scene.placement.leases().at(ShardId{2});
  lease.handed_over = std::make_shared<HandedOver>();
  lease.committed = 1;
  const std::vector<LeaseGrant> grants = scene.lend();
  REQUIRE(grants.at(2).lease.shard == ShardId{2});
  REQUIRE(grants[2].next_batch == scene.run.plan.round_begin(1));
  REQUIRE(lease.handed_over == nullptr);
}

TEST_CASE("placement: after a restart free shards wait for those who may have them",
          "[placement]") {
  PlacementScene scene(1);
  scene.join(1, 4000);
  REQUIRE(scene.lend().empty());
  REQUIRE(scene.placement.rejoin_until() == scene.outbox.now() + Millis(500));
  scene.outbox.set_now(scene.outbox.now() + Micros(499'999));
  REQUIRE(scene.lend().empty());
  scene.outbox.set_now(scene.outbox.now() + Micros(1));
  REQUIRE(scene.lend().size() == 4);
}

TEST_CASE("placement: the grace comes back when the last holder is lost, and not with another",
          "[placement]") {
  PlacementScene scene;
  const SessionId ann = scene.join(1, 2000);
  const SessionId bob = scene.join(2, 2000);
  for (const LeaseGrant& grant : scene.lend()) scene.load(grant);
  REQUIRE(scene.sessions.take(bob));
  REQUIRE(scene.placement.holder_gone(bob, "bob", "gone", 1) == 2);
  (void)scene.lend();
  REQUIRE_FALSE(scene.placement.rejoin_until());
  REQUIRE(scene.sessions.take(ann));
  REQUIRE(scene.placement.holder_gone(ann, "ann", "gone", 1) == 2);
  (void)scene.lend();
  REQUIRE(scene.placement.rejoin_until());
}

TEST_CASE("placement: a newcomer's shards are asked back between two rounds, and only there",
          "[placement]") {
  PlacementScene scene;
  const SessionId ann = scene.join(1, 4000);
  for (const LeaseGrant& grant : scene.lend()) scene.load(grant);
  // One shard has gone on: no longer between two rounds.
  scene.placement.leases().at(ShardId{0}).next_batch = 1;
  scene.join(2, 4000);
  (void)scene.lend();
  REQUIRE(scene.placement.leases().in_state(LeaseState::kReleasing).empty());
  scene.placement.leases().at(ShardId{0}).next_batch = 0;
  (void)scene.lend();
  REQUIRE(scene.placement.leases().in_state(LeaseState::kReleasing).size() == 2);
  REQUIRE(scene.placement.owes(ann, scene.sessions.at(ann)));
}

TEST_CASE("placement: nothing is awaited of a holder that has loaded and may go on",
          "[placement]") {
  PlacementScene scene;
  const SessionId ann = scene.join(1, 4000);
  SessionState& session = scene.sessions.at(ann);
  REQUIRE_FALSE(scene.placement.owes(ann, session));
  const std::vector<LeaseGrant> grants = scene.lend();
  REQUIRE(scene.placement.owes(ann, session));  // loading
  for (const LeaseGrant& grant : grants) scene.load(grant);
  REQUIRE_FALSE(scene.placement.owes(ann, session));
  scene.placement.leases().at(ShardId{3}).next_batch = scene.run.plan.round_end(0);
  REQUIRE(scene.placement.owes(ann, session));  // a commit
}

}  // namespace gleaner

// Volunteers that come back with shards they kept.
#include <catch2/catch.hpp>

#include "tests/support/master_driver.hpp"

namespace gleaner {
namespace {

constexpr Millis kGrace{2'000};

CoreConfig rejoin_config(Millis grace = Millis(0)) {
  CoreConfig settings = tiny_core_config();
  settings.unbalanced_rounds = 1'000'000;
  settings.rejoin_grace = grace;
  return settings;
}

ShardDigest digest(std::uint32_t shard) {
  return {3, 100 + std::uint64_t{shard}};
}

std::vector<ShardDigest> digests() {
  return {digest(0), digest(1), digest(2), digest(3)};
}

// A master restarted at checkpoint 1.
ResumePoint resumed() {
  return {1, false, LeaseEpoch{50}, digests()};
}

SessionId join_keeping(MasterDriver& master, const std::string& name, std::uint32_t shards) {
  const SessionId id = master.open();
  Hello hello = master.hello(name);
  hello.kept_shards = shards;
  master.say(id, std::move(hello));
  return id;
}

OfferedShard kept(std::uint32_t shard) {
  return {{ShardId{shard}, LeaseEpoch{7}}, digest(shard)};
}

ShardOffer offer(const std::vector<std::uint32_t>& shards, RoundIndex checkpoint = 1) {
  ShardOffer message{checkpoint, {}};
  for (const std::uint32_t shard : shards) message.shards.push_back(kept(shard));
  return message;
}

std::size_t remarks(const MasterDriver& master, const std::string& kind) {
  std::size_t count = 0;
  for (const LogLine& remark : master.notices<LogLine>()) count += remark.kind == kind ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("rejoin: a shard whose digest is the store's is lent with nothing to download",
          "[master]") {
  MasterDriver master(tiny_model(), rejoin_config(), resumed());
  const SessionId ann = join_keeping(master, "ann", 2);
  REQUIRE(master.take<Welcome>(ann).checkpoint == 1);
  REQUIRE(master.held_by(ann) == 0);  // nothing is lent before the offer that is due
  master.say(ann, offer({1, 3}));
  for (const std::uint32_t shard : {1u, 3u}) {
    const auto grant = master.take<LeaseGrant>(ann);
    REQUIRE(grant.lease.shard == ShardId{shard});
    REQUIRE(raw(grant.lease.epoch) >= 50);
    REQUIRE(grant.is_held);
    REQUIRE(grant.base_round == 1);
    REQUIRE(grant.next_batch == master.plan().round_begin(1));
    REQUIRE(grant.chunks == 0);
    REQUIRE(grant.label_counts.empty());
    master.say(ann, ShardReady{grant.lease});
  }
  // The others come from the store.
  for (const std::uint32_t shard : {0u, 2u}) {
    const auto grant = master.take<LeaseGrant>(ann);
    REQUIRE(grant.lease.shard == ShardId{shard});
    REQUIRE_FALSE(grant.is_held);
    REQUIRE(grant.chunks == 2);
  }
  REQUIRE(remarks(master, "rejoined") == 1);
}

TEST_CASE("rejoin: a run goes on to its end with shards that were never downloaded", "[master]") {
  MasterDriver master(tiny_model(), rejoin_config(), resumed());
  master.digests = digests();
  const SessionId ann = join_keeping(master, "ann", 4);
  master.say(ann, offer({0, 1, 2, 3}));
  master.settle();
  REQUIRE(master.outcome() == Outcome::kFinished);
  REQUIRE_FALSE(master.last_read.has_value());
}

TEST_CASE("rejoin: a different content is remarked, counted and loaded from the store",
          "[master]") {
  MasterDriver master(tiny_model(), rejoin_config(), resumed());
  const SessionId ann = join_keeping(master, "ann", 3);
  ShardOffer wrong = offer({0, 1, 2});
  ++wrong.shards[0].digest.sum;
  --wrong.shards[2].digest.rows;
  master.say(ann, wrong);
  REQUIRE(master.take<Revoke>(ann).lease == wrong.shards[0].lease);
  REQUIRE(master.take<Revoke>(ann).lease == wrong.shards[2].lease);
  REQUIRE(master.take<LeaseGrant>(ann).is_held);  // shard 1
  for (int i = 0; i < 3; ++i) REQUIRE(master.take<LeaseGrant>(ann).chunks == 2);
  REQUIRE(remarks(master, "different_content") == 1);
  REQUIRE_THAT(master.notices<LogLine>().back().message,
               Catch::Contains("ann offers shard 0 and 1 more with a different content"));
  REQUIRE(master.core().accounts().front().faults == 1);
}

TEST_CASE("rejoin: an offer of another checkpoint, or of shards that are lent, is turned down",
          "[master]") {
  MasterDriver master(tiny_model(), rejoin_config(), resumed());
  const SessionId late = join_keeping(master, "late", 1);
  master.say(late, offer({0}, 2));
  REQUIRE(master.take<Revoke>(late).lease == kept(0).lease);
  REQUIRE(master.held_by(late) == 4);  // from the store
  REQUIRE(master.count<LeaseGrant>(late) == 4);

  const SessionId ann = join_keeping(master, "ann", 2);
  master.say(ann, offer({1, 2}));
  REQUIRE(master.count<Revoke>(ann) == 2);
  REQUIRE(master.held_by(ann) == 0);
  REQUIRE(remarks(master, "different_content") == 0);
  REQUIRE(remarks(master, "rejoined") == 0);
}

TEST_CASE("rejoin: without digests to compare with nothing is trusted", "[master]") {
  MasterDriver master(tiny_model(), rejoin_config(), {1, false});
  const SessionId ann = join_keeping(master, "ann", 1);
  master.say(ann, offer({0}));
  REQUIRE(master.count<Revoke>(ann) == 1);
  REQUIRE_FALSE(master.take<LeaseGrant>(ann).is_held);
}

TEST_CASE("rejoin: an input shard comes back like any other, where it is lent", "[master]") {
  for (const bool is_lent : {true, false}) {
    CAPTURE(is_lent);
    CoreConfig settings = rejoin_config();
    settings.lends_input = is_lent;
    ResumePoint point = resumed();
    point.digests.push_back(digest(4));  // the only input shard
    MasterDriver master(tiny_model(), settings, std::move(point));
    const SessionId ann = join_keeping(master, "ann", 2);
    master.say(ann, offer({0, 4}));
    const auto grant = master.take<LeaseGrant>(ann);
    REQUIRE((grant.lease.shard == ShardId{0} && grant.is_held));
    if (!is_lent) {
      REQUIRE(master.take<Revoke>(ann).lease == kept(4).lease);
      REQUIRE_FALSE(master.is_closed(ann));
      continue;
    }
    const auto input = master.take<LeaseGrant>(ann);
    REQUIRE((input.lease.shard == ShardId{4} && input.is_held && input.chunks == 0));
    REQUIRE(input.next_batch == master.plan().round_begin(1));
    master.say(ann, ShardReady{input.lease});
    const auto unit = master.take<InputUnit>(ann);
    REQUIRE(unit.leases == std::vector<LeaseRef>{input.lease});
    REQUIRE(unit.steps.front().kind == InputStep::Kind::kForward);
    REQUIRE(unit.steps.front().index == input.next_batch);
    // It may ask for the points that it needs.
    master.say(ann, PointsRequest{PointSet::kTraining, {0}});
    REQUIRE(master.run_worker());
    REQUIRE(master.take<Points>(ann).points == std::vector<std::uint64_t>{0});
  }
}

TEST_CASE(
    "rejoin: an offer that was not announced, a second one, or shards the run has not end "
    "the session",
    "[master]") {
  for (const int what : {0, 1, 2}) {
    CAPTURE(what);
    MasterDriver master(tiny_model(), rejoin_config(), resumed());
    const SessionId ann = join_keeping(master, "ann", what == 0 ? 0 : 1);
    if (what == 0) master.say(ann, offer({0}));
    if (what == 1) {
      master.say(ann, offer({0}));
      REQUIRE_FALSE(master.is_closed(ann));
      master.say(ann, offer({0}));
    }
    if (what == 2) {
      ShardOffer beyond = offer({0});
      beyond.shards.push_back({{ShardId{5}, LeaseEpoch{7}}, {}});
      master.say(ann, beyond);
    }
    REQUIRE(master.take<Refusal>(ann).code == ErrorCode::kProtocol);
    REQUIRE(master.is_closed(ann));
  }
}

TEST_CASE("rejoin: an offer while the checkpoint moves on is turned down", "[master]") {
  // The replay log of the round that is being folded is about to go.
  MasterDriver master(tiny_model(), rejoin_config(), resumed());
  const SessionId ann = join_keeping(master, "ann", 4);
  master.say(ann, offer({0, 1, 2, 3}));
  while (master.storage.empty() || !std::holds_alternative<FoldTask>(master.storage.front())) {
    REQUIRE((master.run_worker() || master.serve(ann) || master.run_storage()));
  }
  master.close(ann);
  const SessionId back = join_keeping(master, "ann", 4);
  master.say(back, offer({0, 1, 2, 3}));
  REQUIRE(master.count<Revoke>(back) == 4);
  master.settle();
  REQUIRE(master.outcome() == Outcome::kFinished);
}

TEST_CASE("rejoin: a shard stepped back behind its own durable commits replays and commits again",
          "[master]") {
  MasterDriver master(tiny_model(), rejoin_config());
  master.digests = digests();
  const SessionId ann = master.join("ann");
  // The input layer's commit of round 1 is slow, so that the round stays open.
  const auto is_held_up = [&] {
    const auto* commit =
        master.worker.empty() ? nullptr : std::get_if<CommitInputTask>(&master.worker.front());
    return commit != nullptr && commit->round == 1;
  };
  while (master.serve(ann) || master.run_storage() || (!is_held_up() && master.run_worker())) {
  }
  REQUIRE(master.core().checkpoint() == 1);
  master.close(ann);
  const SessionId back = join_keeping(master, "ann", 4);
  master.say(back, offer({0, 1, 2, 3}));
  for (std::uint32_t s = 0; s < 4; ++s) {
    const ShardLease& lease = master.core().leases().at(ShardId{s});
    REQUIRE(lease.holder == back);
    REQUIRE(lease.committed == 2);
    REQUIRE(lease.base_round == 1);
    REQUIRE(lease.next_commit == 1);
  }
  master.settle();
  REQUIRE(master.outcome() == Outcome::kFinished);
  REQUIRE_FALSE(master.last_read.has_value());
}

// ---- The grace ---------------------------------------------------------------------------------

TEST_CASE("rejoin: after a restart free shards wait for those who have them, and no longer",
          "[master]") {
  MasterDriver master(tiny_model(), rejoin_config(kGrace), resumed());
  const SessionId bob = master.join("bob");
  REQUIRE(master.held_by(bob) == 0);
  master.tick(Millis(600));
  REQUIRE(master.core().progress().waiting_for ==
          "shards of volunteers that may come back, 1.4 s more");
  const SessionId ann = join_keeping(master, "ann", 1);
  master.say(ann, offer({2}));
  REQUIRE(master.held_by(ann) == 1);
  REQUIRE(master.held_by(bob) == 0);
  master.tick(kGrace - Millis(601));
  REQUIRE(master.held_by(bob) == 0);
  master.tick(Millis(1));
  REQUIRE(master.held_by(ann) + master.held_by(bob) == 4);
  REQUIRE(master.held_by(bob) == 2);
}

TEST_CASE("rejoin: the grace is over as soon as no shard is free", "[master]") {
  MasterDriver master(tiny_model(), rejoin_config(kGrace), resumed());
  const SessionId ann = join_keeping(master, "ann", 2);
  const SessionId bob = join_keeping(master, "bob", 2);
  master.say(ann, offer({0, 1}));
  master.say(bob, offer({2, 3}));
  REQUIRE(master.held_by(ann) == 2);
  REQUIRE(master.held_by(bob) == 2);
  // The death of one is none of the network's: its shards are lent at once.
  master.close(bob);
  REQUIRE(master.held_by(ann) == 4);
}

TEST_CASE("rejoin: when all are lost at once, the first to come does not take everything",
          "[master]") {
  CoreConfig settings = rejoin_config(kGrace);
  settings.min_volunteers = 2;
  MasterDriver master(tiny_model(), settings);
  master.digests = digests();
  const SessionId ann = master.join("ann");
  const SessionId bob = master.join("bob");
  REQUIRE(master.held_by(ann) == 2);  // a new run waits for nobody
  while (master.core().checkpoint() < 1) {
    REQUIRE(
        (master.run_worker() || master.serve(ann) || master.serve(bob) || master.run_storage()));
  }
  master.close(bob);
  REQUIRE(master.held_by(ann) == 4);  // one of two: at once
  master.close(ann);
  master.tick(Millis(1'000));
  const SessionId cec = master.join("cec");
  REQUIRE(master.held_by(cec) == 0);
  master.tick(Millis(1'000));
  REQUIRE(master.held_by(cec) == 4);
}

TEST_CASE("rejoin: who announces shards and never offers them is let go", "[master]") {
  CoreConfig settings = rejoin_config(kGrace);
  settings.stall = Millis(30'000);
  MasterDriver master(tiny_model(), settings, resumed());
  const SessionId ann = join_keeping(master, "ann", 4);
  for (int second = 0; second < 29; ++second) {
    master.say(ann, Heartbeat{});
    master.tick(Millis(1'000));
  }
  REQUIRE(master.held_by(ann) == 0);
  REQUIRE(master.core().progress().waiting_for == "ann to offer the 4 shards it kept");
  master.say(ann, Heartbeat{});
  master.tick(Millis(1'000));
  REQUIRE(master.take<Refusal>(ann).code == ErrorCode::kStaleLease);
}

TEST_CASE("rejoin: a volunteer that is about to offer keeps nobody else waiting", "[master]") {
  MasterDriver master(tiny_model(), rejoin_config(), resumed());
  const SessionId ann = join_keeping(master, "ann", 4);
  REQUIRE(master.held_by(ann) == 0);
  const SessionId bob = master.join("bob");
  REQUIRE(master.held_by(bob) == 4);
}

TEST_CASE("rejoin: shards stay where they come back to, whoever has more of them", "[master]") {
  MasterDriver master(tiny_model(), rejoin_config(kGrace), resumed());
  const SessionId ann = join_keeping(master, "ann", 3);
  const SessionId bob = join_keeping(master, "bob", 1);
  master.say(ann, offer({0, 1, 2}));
  master.say(bob, offer({3}));
  master.settle_without_storage();
  REQUIRE(master.held_by(ann) == 3);
  REQUIRE(master.held_by(bob) == 1);
  REQUIRE(remarks(master, "moving") == 0);
}

TEST_CASE("rejoin: who comes back in vain is a newcomer like any other", "[master]") {
  MasterDriver master(tiny_model(), rejoin_config(), resumed());
  const SessionId bob = master.join("bob");
  const SessionId ann = join_keeping(master, "ann", 2);
  master.say(ann, offer({0, 1}));
  while (remarks(master, "moving") == 0) {
    REQUIRE((master.serve(ann) || master.serve(bob) || master.run_storage()));
  }
  REQUIRE(master.count<ReleaseRequest>(bob) == 2);
}

TEST_CASE("rejoin: who leaves at once hands nothing over", "[master]") {
  MasterDriver master(tiny_model(), rejoin_config(kGrace), resumed());
  const SessionId ann = join_keeping(master, "ann", 2);
  const SessionId bob = join_keeping(master, "bob", 1);
  REQUIRE_FALSE(master.is_closed(bob));
  master.say(ann, Leaving{"the machine is needed"});
  REQUIRE(master.is_closed(ann));
}

}  // namespace gleaner

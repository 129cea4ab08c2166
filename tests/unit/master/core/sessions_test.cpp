#include "master/core/sessions.hpp"

#include <catch2/catch.hpp>
#include <set>
#include <vector>

#include "common/limits.hpp"
#include "schema/versions.hpp"
#include "tests/support/obligations.hpp"
#include "tests/support/tiny_run.hpp"

namespace gleaner {
namespace {

CoreConfig sessions_config(AuditMode audit, std::uint32_t places) {
  CoreConfig config = tiny_core_config();
  config.audit = audit;
  config.shard_bytes = 1000;
  config.sessions_max = places;
  config.heartbeat = Millis(1'000);
  config.join_timeout = Millis(2'000);
  config.silence = Millis(3'000);
  config.stall = Millis(4'000);
  config.stranger_stall = Millis(1'000);
  config.batches_per_unit_max = 2;
  return config;
}

struct SessionsScene {
  RunSetup run;
  Outbox outbox;
  Sessions sessions{run, outbox, LeaseEpoch{1}};

  explicit SessionsScene(AuditMode audit = AuditMode::kOff, std::uint32_t places = 2)
      : run(tiny_model(), sessions_config(audit, places), {}) {
    outbox.set_now(Instant(Micros(1'000'000)));
  }

  void pass(Millis time) { outbox.set_now(outbox.now() + time); }

  SessionState& open(std::uint64_t id) {
    sessions.opened({SessionId{id}, "peer", standing(id)});
    return sessions.at(SessionId{id});
  }

  static Standing standing(std::uint64_t identity) {
    Standing standing;
    standing.identity = {7, identity};
    return standing;
  }

  static Hello hello() {
    Hello hello;
    hello.protocol_min = kProtocolMin;
    hello.protocol_max = kProtocolMax;
    hello.memory_bytes = 1000;
    hello.name = "ann";
    return hello;
  }

  SessionState& join_stranger(std::uint64_t id, InviteId invite) {
    SessionState& session = open(id);
    session.standing.is_trusted = false;
    session.standing.invite = invite;
    REQUIRE(sessions.activate(SessionId{id}, session, hello(), kProtocolMax, 0));
    return session;
  }

  // Opened and active.
  SessionState& join(std::uint64_t id) {
    SessionState& session = open(id);
    REQUIRE(sessions.activate(SessionId{id}, session, hello(), kProtocolMax, 0));
    return session;
  }
};

std::optional<OutstandingWork> never() {
  FAIL("nobody asks what a session owes before it could be too late");
  return std::nullopt;
}

}  // namespace

TEST_CASE("sessions: a Hello passes with exactly the memory of a shard, and not with less",
          "[sessions]") {
  SessionsScene scene;
  const SessionState& session = scene.open(1);
  Hello hello = SessionsScene::hello();
  REQUIRE(*scene.sessions.check(session, hello) == kProtocolMax);
  hello.memory_bytes = 999;
  REQUIRE(scene.sessions.check(session, hello).error().code == ErrorCode::kResources);
  hello.protocol_min = kProtocolMax + 1;
  hello.protocol_max = kProtocolMax + 1;
  REQUIRE(scene.sessions.check(session, hello).error().code == ErrorCode::kVersion);
  REQUIRE(scene.outbox.take().empty());
}

TEST_CASE(
    "sessions: there is room for sessions_max volunteers, and for one more when one is leaving",
    "[sessions]") {
  SessionsScene scene;
  SessionState& ann = scene.join(1);
  scene.join(2);
  SessionState& carl = scene.open(3);
  const auto refused =
      scene.sessions.activate(SessionId{3}, carl, SessionsScene::hello(), kProtocolMax, 0);
  REQUIRE(refused.error().code == ErrorCode::kBusy);
  REQUIRE(carl.phase == SessionPhase::kIntroducing);
  REQUIRE(scene.sessions.accounts().size() == 2);
  scene.sessions.leaves(SessionId{1}, ann);
  REQUIRE(scene.sessions.activate(SessionId{3}, carl, SessionsScene::hello(), kProtocolMax, 7));
  REQUIRE(scene.sessions.active() == 2);
  const Effects effects = scene.outbox.take();
  const auto& welcome = std::get<Welcome>(std::get<Send>(effects.at(effects.size() - 2)).message);
  REQUIRE(welcome.checkpoint == 7);
  REQUIRE(std::get<VolunteerJoined>(std::get<Notice>(effects.back())).volunteers == 2);
}

TEST_CASE("sessions: an identity is found while its session lasts, and not before its Hello",
          "[sessions]") {
  SessionsScene scene;
  scene.open(1);
  REQUIRE_FALSE(scene.sessions.of_identity({7, 1}));
  scene.join(5);
  REQUIRE(scene.sessions.of_identity({7, 5}) == SessionId{5});
  REQUIRE(scene.sessions.take(SessionId{5}));
  REQUIRE_FALSE(scene.sessions.of_identity({7, 5}));
  REQUIRE_FALSE(scene.sessions.take(SessionId{5}));
}

TEST_CASE("sessions: each deadline strikes when its time is full and not a microsecond before",
          "[sessions]") {
  SessionsScene scene;
  SECTION("a connection that does not introduce itself") {
    const SessionState& session = scene.open(1);
    scene.outbox.set_now(scene.outbox.now() + Micros(1'999'999));
    REQUIRE_FALSE(scene.sessions.overdue(session, never));
    scene.outbox.set_now(scene.outbox.now() + Micros(1));
    REQUIRE(scene.sessions.overdue(session, never)->reason == "no Hello within 2 s");
  }
  SECTION("a volunteer that is silent") {
    const SessionState& session = scene.join(1);
    scene.outbox.set_now(scene.outbox.now() + Micros(2'999'999));
    const auto nothing = [] { return std::optional<OutstandingWork>(); };
    REQUIRE_FALSE(scene.sessions.overdue(session, nothing));
    scene.outbox.set_now(scene.outbox.now() + Micros(1));
    REQUIRE(scene.sessions.overdue(session, never)->reason == "silent for 3 s");
  }
  SECTION("a volunteer that owes work") {
    SessionState& session = scene.join(1);
    const OutstandingWork outstanding{Obligation::kLoad, scene.outbox.now(),
                                      scene.outbox.now() + Millis(4'000)};
    scene.outbox.set_now(scene.outbox.now() + Micros(3'999'999));
    session.last_heard = scene.outbox.now();
    REQUIRE_FALSE(scene.sessions.overdue(session, [&] { return outstanding; }));
    scene.outbox.set_now(scene.outbox.now() + Micros(1));
    REQUIRE_FALSE(scene.sessions.overdue(session, [] { return std::optional<OutstandingWork>(); }));
    const auto overdue = scene.sessions.overdue(session, [&] { return outstanding; });
    REQUIRE(overdue->reason == "did not load a shard within 4 s");
    REQUIRE(overdue->waited == Millis(4'000));
  }
}

TEST_CASE("sessions: a stranger that others wait for has less time", "[sessions]") {
  SessionsScene scene(GENERATE(AuditMode::kAll, AuditMode::kAdaptive));
  SessionState& eve = scene.join(1);
  eve.standing.is_trusted = false;
  SessionState& ann = scene.join(2);
  const CoreConfig& config = scene.run.config;
  // Nobody is known to be faster.
  REQUIRE(scene.sessions.time_for(Obligation::kUnit, eve) == config.stall);
  ann.speed = 1;
  ann.compute_us = 1'000;
  scene.sessions.tick();
  REQUIRE(scene.sessions.time_for(Obligation::kUnit, eve) == config.stranger_stall);
  REQUIRE(scene.sessions.time_for(Obligation::kUnit, ann) == config.stall);
  const Instant since = scene.outbox.now();
  const auto outstanding = [&] {
    return std::optional(OutstandingWork{Obligation::kUnit, since, since + config.stranger_stall});
  };
  scene.pass(config.stranger_stall);
  eve.last_heard = scene.outbox.now();
  // The master may have been frozen, and has to hear her first.
  scene.sessions.tick();
  REQUIRE_FALSE(scene.sessions.overdue(eve, outstanding));
  scene.sessions.tick();
  REQUIRE(scene.sessions.overdue(eve, outstanding)->waited == config.stranger_stall);
}

TEST_CASE("sessions: a stranger that is silent while it owes something is quarantined",
          "[sessions]") {
  SessionsScene scene(AuditMode::kAll);
  SessionState& eve = scene.join(1);
  SessionState& ann = scene.join(2);
  eve.standing.is_trusted = false;
  const Millis silence = scene.run.config.silence;
  const OutstandingWork outstanding{Obligation::kLoad, scene.outbox.now(),
                                    scene.outbox.now() + 2 * silence};
  scene.pass(silence);
  REQUIRE(scene.sessions.overdue(eve, [&] { return outstanding; })->waited == silence);
  REQUIRE_FALSE(
      scene.sessions.overdue(eve, [] { return std::optional<OutstandingWork>(); })->waited);
  REQUIRE_FALSE(scene.sessions.overdue(ann, [&] { return outstanding; })->waited);
}

TEST_CASE("sessions: a stranger gets no shards for ten times as long as others waited for it",
          "[sessions]") {
  SessionsScene scene(AuditMode::kAll, 4);
  SessionState& eve = scene.join_stranger(1, InviteId{5});
  const Millis waited = scene.run.config.forget_slowness;
  scene.sessions.quarantine(eve, waited);
  REQUIRE(eve.quarantined_until == scene.outbox.now() + 10 * waited);
  // Others are not blamed for her longer than for anything else.
  REQUIRE(scene.join_stranger(2, InviteId{5}).quarantined_until == scene.outbox.now() + waited);
  scene.sessions.quarantine(scene.join(3), waited);
  REQUIRE(scene.sessions.at(SessionId{3}).quarantined_until == scene.outbox.now() + waited);
}

TEST_CASE("sessions: a pause gives a stranger no time", "[sessions]") {
  SessionsScene scene(AuditMode::kAll);
  SessionState& eve = scene.join(1);
  SessionState& ann = scene.join(2);
  eve.standing.is_trusted = false;
  const OutstandingWork outstanding{Obligation::kUnit, scene.outbox.now(),
                                    scene.outbox.now() + Millis(4'000)};
  scene.pass(Millis(4'000));
  for (SessionState* session : {&eve, &ann}) {
    session->paused = "the machine is in use";
    session->last_heard = session->paused_at = scene.outbox.now();
  }
  REQUIRE(scene.sessions.overdue(eve, [&] { return outstanding; }));
  REQUIRE_FALSE(scene.sessions.overdue(ann, [&] { return outstanding; }));
}

TEST_CASE("sessions: whoever misses again and again gets no shards for longer and longer",
          "[sessions]") {
  SessionsScene scene(AuditMode::kAll);
  const Millis first = scene.run.config.forget_slowness;
  // Each time she comes again.
  for (const int times : {1, 2, 4, 8}) {
    SessionState& eve = scene.join_stranger(1, InviteId{});
    eve.is_proven = true;
    scene.sessions.quarantine(eve);
    REQUIRE(eve.quarantined_until == scene.outbox.now() + first * times);
    REQUIRE(scene.sessions.take(SessionId{1}));
    REQUIRE(scene.join(1).quarantined_until == scene.outbox.now() + first * times);
    REQUIRE(scene.sessions.take(SessionId{1}));
    scene.pass(first * times);
    REQUIRE(scene.join(1).quarantined_until == Instant{});
    REQUIRE(scene.sessions.take(SessionId{1}));
  }
  // Ann had proved herself: others of her invite are not blamed.
  REQUIRE(scene.join_stranger(2, InviteId{}).quarantined_until == Instant{});
}

TEST_CASE("sessions: who is new and misses something quarantines what else is new by its invite",
          "[sessions]") {
  SessionsScene scene(AuditMode::kAll);
  SessionState& eve = scene.join_stranger(1, InviteId{5});
  scene.sessions.quarantine(eve);
  const Instant until = eve.quarantined_until;
  REQUIRE(scene.sessions.take(SessionId{1}));
  REQUIRE(scene.join_stranger(2, InviteId{5}).quarantined_until == until);
  REQUIRE(scene.sessions.take(SessionId{2}));
  REQUIRE(scene.join_stranger(3, InviteId{6}).quarantined_until == Instant{});
}

TEST_CASE("sessions: by a suspended invite only those come whose work was confirmed",
          "[sessions]") {
  SessionsScene scene(AuditMode::kAll);
  scene.sessions.prove(scene.join_stranger(1, InviteId{5}));
  REQUIRE(scene.sessions.take(SessionId{1}));
  const auto come = [&](std::uint64_t id) {
    SessionState& session = scene.open(id);
    session.standing.is_trusted = false;
    session.standing.is_suspended = true;
    return scene.sessions.activate(SessionId{id}, session, SessionsScene::hello(), kProtocolMax, 0);
  };
  REQUIRE(come(1));
  REQUIRE(come(2).error().code == ErrorCode::kInvite);
}

TEST_CASE("sessions: strangers cannot take the places that are kept for others", "[sessions]") {
  SessionsScene scene(AuditMode::kAll, 4);
  for (const std::uint64_t id : {1, 2, 3}) scene.join_stranger(id, InviteId{id});
  SessionState& eve = scene.open(4);
  eve.standing.is_trusted = false;
  const auto refused =
      scene.sessions.activate(SessionId{4}, eve, SessionsScene::hello(), kProtocolMax, 0);
  REQUIRE(refused.error().message.find("3 strangers") != std::string::npos);
  scene.join(5);
  // The run's own volunteers come when it is full, too.
  SessionState& referee = scene.open(6);
  referee.standing.is_local = true;
  REQUIRE(scene.sessions.activate(SessionId{6}, referee, SessionsScene::hello(), kProtocolMax, 0));
}

TEST_CASE("obligations: what volunteers can owe is met by a message each", "[sessions]") {
  const std::vector<Message> all = {Hello{},      Heartbeat{},   ShardOffer{},  ShardReady{},
                                    UnitResult{}, EvalResult{},  InputResult{}, ShardCommit{},
                                    HandOver{},   ChunkRequest{}};
  std::set<Obligation> met;
  for (const Message& message : all) {
    if (const auto one = met_by(message)) met.insert(*one);
  }
  REQUIRE(met == std::set<Obligation>(kObligations.begin(), kObligations.end()));
  REQUIRE_FALSE(met_by(ChunkRequest{}));
}

TEST_CASE("sessions: four observers are answered between two ticks", "[sessions]") {
  SessionsScene scene;
  const SessionState& session = scene.open(1);
  Observe observe;
  observe.protocol_min = kProtocolMin;
  observe.protocol_max = kProtocolMax;
  for (int i = 0; i < 4; ++i) REQUIRE(scene.sessions.admit_observer(session, observe));
  REQUIRE(scene.sessions.admit_observer(session, observe).error().code == ErrorCode::kBusy);
  scene.sessions.tick();
  REQUIRE(scene.sessions.admit_observer(session, observe));
  // A volunteer has other ways to ask.
  REQUIRE(scene.sessions.admit_observer(scene.join(2), observe).error().code ==
          ErrorCode::kProtocol);
}

TEST_CASE("sessions: the last departures are kept, oldest first", "[sessions]") {
  SessionsScene scene;
  const SessionState session = scene.join(1);
  for (std::uint32_t i = 0; i <= kDeparturesMax; ++i) {
    scene.sessions.departed(session, std::to_string(i), i);
  }
  REQUIRE(scene.sessions.gone().size() == kDeparturesMax);
  REQUIRE(scene.sessions.gone().front().shards == 1);
  REQUIRE(scene.sessions.gone().back().reason == std::to_string(kDeparturesMax));
}

TEST_CASE("accounts: whoever did nothing leaves none, and units without an answer are expired",
          "[sessions]") {
  SessionsScene scene;
  SessionState idle = scene.join(1);
  SessionState busy = scene.join(2);
  scene.sessions.account(busy).units_issued = 1;
  busy.units[UnitId{1}];
  Accounts accounts;
  accounts.of(idle);
  accounts.of(busy).units_issued = 1;
  accounts.end(idle);
  accounts.end(busy);
  const std::vector<AccountRecord> all = accounts.all();
  REQUIRE(all.size() == 1);
  REQUIRE(all[0].identity == KeyId{7, 2});
  REQUIRE(all[0].units_expired == 1);
  // Present: stays. Gone: handed in as final, once.
  REQUIRE_FALSE(accounts.hand_in({busy.standing.identity}).at(0).is_final);
  REQUIRE(accounts.hand_in({}).at(0).is_final);
  REQUIRE(accounts.hand_in({}).empty());
}

}  // namespace gleaner

// Newcomers: what a stranger must do before others wait for it.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/support/master_driver.hpp"

namespace gleaner {
namespace {

CoreConfig audited() {
  CoreConfig config = tiny_core_config();
  config.audit = AuditMode::kAll;
  return config;
}

// Ann is trusted; the first round is folded, so that there is an exercise.
struct NewcomerScene {
  explicit NewcomerScene(const CoreConfig& config = audited()) : master(model(), config) {
    ann = master.join("ann");
    // Somebody must have come for whom it is worth while.
    master.close(master.join_stranger("zoe"));
    master.tick();
    while (master.core().checkpoint() == 0) step();
  }

  static ModelConfig model() {
    ModelConfig model = tiny_model();
    model.epochs *= 8;
    return model;
  }

  void step() {
    const bool moved = master.run_worker() || master.run_storage() || master.serve(ann);
    REQUIRE(moved);
  }

  // Ann goes on to the next checkpoint but one.
  void two_rounds() {
    const RoundIndex end = master.core().checkpoint() + 2;
    while (master.core().checkpoint() < end) step();
  }

  MasterDriver master;
  SessionId ann{};
};

std::string last_remark(const MasterDriver& master, const std::string& kind) {
  std::string message;
  for (const LogLine& remark : master.notices<LogLine>()) {
    if (remark.kind == kind) message = remark.message;
  }
  return message;
}

}  // namespace

TEST_CASE("trials: a newcomer holds nothing before it has done a unit whose answer is known",
          "[master]") {
  NewcomerScene scene;
  MasterDriver& master = scene.master;
  const SessionId bob = master.join_stranger("bob");
  master.tick();
  REQUIRE(master.held_by(bob) == 0);
  // The run does not wait for it.
  scene.two_rounds();
  REQUIRE(master.held_by(bob) == 0);
  REQUIRE(master.core().shadows().count_held_by(bob) == 0);
  REQUIRE(master.serve(bob));  // loads
  REQUIRE(master.serve(bob));  // answers
  REQUIRE(master.count<Revoke>(bob) == 1);
  while (master.held_by(bob) == 0) scene.step();
  master.run_to_end();
  REQUIRE(master.outcome() == Outcome::kFinished);
}

TEST_CASE("trials: a false answer costs the others nothing, and holds its teller back",
          "[master]") {
  NewcomerScene scene;
  MasterDriver& master = scene.master;
  const SessionId eve = master.join_stranger("eve");
  master.corrupt(eve, [](Message& message) {
    auto* const result = std::get_if<UnitResult>(&message);
    if (result != nullptr) result->batches[0].shards[0].gradient_digest ^= 1;
  });
  master.tick();
  while (master.serve(eve)) {
  }
  REQUIRE_THAT(last_remark(master, "trial_failed"), Catch::Contains("eve gets no shards"));
  REQUIRE(master.notices<Conviction>().empty());
  for (int i = 0; i < 3; ++i) {
    scene.two_rounds();
    master.tick();
    REQUIRE(master.held_by(eve) == 0);
    REQUIRE(master.count<LeaseGrant>(eve) == 0);
  }
  REQUIRE_FALSE(master.is_closed(eve));
}

TEST_CASE("trials: one that never loads is sent away in its time, and nobody waits", "[master]") {
  const CoreConfig config = audited();
  NewcomerScene scene(config);
  MasterDriver& master = scene.master;
  const SessionId eve = master.join_stranger("eve");
  master.tick();
  const Millis time = config.stranger_stall * 6;
  for (Millis waited{0}; waited <= time; waited += Millis(1'000)) {
    REQUIRE_FALSE(master.is_closed(eve));
    master.say(scene.ann, Heartbeat{});
    master.say(eve, Heartbeat{});
    master.tick(Millis(1'000));
  }
  REQUIRE(master.is_closed(eve));
  REQUIRE_THAT(master.take<Refusal>(eve).sentence, Catch::Contains("did not load a shard"));
}

TEST_CASE("trials: a fold leaves rows behind that were to be read, and a later round is taken",
          "[master]") {
  CoreConfig config = audited();
  config.rows_per_chunk = 1;
  ResumePoint resume;
  resume.checkpoint = 1;
  MasterDriver master(NewcomerScene::model(), config, resume);
  const SessionId ann = master.join("ann");
  while (master.core().checkpoint() == 1) {
    REQUIRE((master.run_worker() || master.serve(ann) || master.run_storage()));
  }
  // All commits of the round are on their way to the store when rows are wanted for the first time.
  master.settle_without_storage();
  const SessionId bob = master.join_stranger("bob");
  // The driver throws when a checkpoint is read that is gone.
  while (!master.outcome() && master.count<LeaseGrant>(bob) == 0) {
    master.tick();
    REQUIRE((master.run_worker() || master.serve(ann) || master.run_storage()));
  }
  REQUIRE(master.held_by(bob) == 0);
}

TEST_CASE("trials: an auditor that the fold confirms has proved itself", "[master]") {
  ResumePoint resume;
  resume.proven.insert({7, 1});
  MasterDriver master(NewcomerScene::model(), audited(), resume);
  const SessionId ann = master.join_stranger("ann");
  // Bob audits her, since there is no exercise yet.
  const SessionId bob = master.join_stranger("bob");
  REQUIRE(master.held_by(bob) == 0);
  while (master.held_by(bob) == 0 && !master.outcome()) {
    bool moved = master.run_worker() || master.run_storage();
    for (const SessionId id : {ann, bob}) moved = master.serve(id) || moved;
    REQUIRE(moved);
  }
  REQUIRE(master.held_by(bob) > 0);
}

TEST_CASE("trials: where nobody else can train, newcomers hold shards at once", "[master]") {
  MasterDriver master(tiny_model(), audited());
  const SessionId bob = master.join_stranger("bob");
  REQUIRE(master.held_by(bob) == 4);
}

TEST_CASE("trials: who has commits in the ledger is no newcomer", "[master]") {
  ResumePoint resume;
  resume.proven.insert({7, 2});
  MasterDriver master(tiny_model(), audited(), resume);
  const SessionId ann = master.join("ann");
  const SessionId bob = master.join_stranger("bob");
  const SessionId eve = master.join_stranger("eve");
  master.settle_without_storage();
  master.close(ann);
  REQUIRE(master.held_by(bob) > 0);
  REQUIRE(master.held_by(eve) == 0);
}

TEST_CASE("trials: chunks are asked for once, and after that the volunteer is refused",
          "[master]") {
  ResumePoint resume;
  resume.checkpoint = 1;
  CoreConfig config = audited();
  config.rejoin_grace = Millis(0);
  MasterDriver master(tiny_model(), config, resume);
  const SessionId eve = master.join_stranger("eve");
  master.tick();
  const auto grant = master.take<LeaseGrant>(eve);
  REQUIRE(grant.chunks > 0);
  for (std::uint32_t i = 0; i < grant.chunks; ++i) {
    master.say(eve, ChunkRequest{grant.lease, 0});
    while (master.run_storage()) {
    }
    REQUIRE_FALSE(master.is_closed(eve));
  }
  master.say(eve, ChunkRequest{grant.lease, 0});
  REQUIRE(master.is_closed(eve));
}

}  // namespace gleaner

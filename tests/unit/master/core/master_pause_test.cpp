// Volunteers that pause: what they get, and how long they may keep what they have.
#include <catch2/catch.hpp>

#include "tests/support/master_driver.hpp"

namespace gleaner {
namespace {

// Loads everything and leaves units out with everybody.
struct PausedRun {
  PausedRun() : master(tiny_model(), settings()) {
    ann = master.join("ann");
    bob = master.join("bob");
    while (master.core().leases().in_state(LeaseState::kReady).size() < 4) {
      if (!master.run_storage() && !master.serve(ann)) master.serve(bob);
    }
    while (master.count<TrainUnit>(ann) == 0) REQUIRE(master.run_worker());
  }

  static CoreConfig settings() {
    CoreConfig settings = tiny_core_config();
    settings.unbalanced_rounds = 1'000'000;
    settings.min_volunteers = 2;
    return settings;
  }

  void say_paused(SessionId id, const std::string& reason) {
    Heartbeat heartbeat;
    heartbeat.paused = reason;
    master.say(id, heartbeat);
  }

  // Both are heard all the while; ann is paused.
  void wait(Millis time) {
    for (Millis waited{0}; waited < time; waited += Millis(1'000)) {
      say_paused(ann, "the machine is in use");
      master.say(bob, Heartbeat{});
      master.tick(Millis(1'000));
    }
  }

  MasterDriver master;
  SessionId ann{}, bob{};
};

}  // namespace

TEST_CASE("pause: a paused volunteer gets no units and no shards, and is not let go", "[master]") {
  PausedRun run;
  MasterDriver& master = run.master;
  const std::size_t had = master.count<TrainUnit>(run.ann);
  run.say_paused(run.ann, "the machine is in use");
  REQUIRE(master.notices<LogLine>().back().kind == "paused");
  REQUIRE(master.core().status().volunteers.at(0).no_shards ==
          "paused: the machine is in use, for 0 s");
  while (master.run_worker() || master.serve(run.bob)) {
  }
  REQUIRE(master.count<TrainUnit>(run.ann) == had);
  run.wait(PausedRun::settings().stall * 2);
  REQUIRE_FALSE(master.is_closed(run.ann));
  // Shards that bob leaves behind are nothing for ann.
  const std::size_t grants = master.count<LeaseGrant>(run.ann);
  master.close(run.bob);
  REQUIRE(master.count<LeaseGrant>(run.ann) == grants);
  // It works again: it gets the shards, and the run ends as it should.
  run.say_paused(run.ann, "");
  REQUIRE(master.held_by(run.ann) == 4);
  master.settle();
  REQUIRE(master.outcome() == Outcome::kFinished);
}

TEST_CASE("pause: nobody holds a run up for ever by pausing again and again", "[master]") {
  PausedRun run;
  MasterDriver& master = run.master;
  const Millis limit = PausedRun::settings().stall * 3;
  for (Millis waited{0}; waited < limit + Millis(5'000); waited += Millis(5'000)) {
    run.wait(Millis(5'000));
    while (master.run_worker() || master.serve(run.bob)) {
    }
    if (!master.is_closed(run.ann)) run.say_paused(run.ann, "");
  }
  REQUIRE(master.is_closed(run.ann));
  master.settle();
  REQUIRE(master.outcome() == Outcome::kFinished);
}

TEST_CASE("pause: a paused volunteer that leaves hands over as any other", "[master]") {
  PausedRun run;
  MasterDriver& master = run.master;
  run.say_paused(run.ann, "paused by its owner");
  master.say(run.ann, Leaving{"paused by its owner"});
  // It computes again until its shards are gone.
  master.tick(Millis(1'000));
  run.say_paused(run.ann, "");
  const VolunteerEntry ann = master.core().status().volunteers.at(0);
  REQUIRE(ann.is_leaving);
  REQUIRE(ann.no_shards == "paused by its owner, for 1 s");
  while (!master.is_closed(run.ann)) REQUIRE((master.serve(run.ann) || master.run_storage()));
  REQUIRE(master.notices<VolunteerLeft>().at(0).polite);
  REQUIRE(master.notices<VolunteerLeft>().at(0).reason == "paused by its owner");
  master.settle();
  REQUIRE(master.outcome() == Outcome::kFinished);
}

}  // namespace gleaner

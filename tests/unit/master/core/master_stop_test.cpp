// Stopping and resuming.
#include <catch2/catch.hpp>

#include "tests/support/master_driver.hpp"
#include "tests/unit/master/core/tasks_done.hpp"

namespace gleaner {

TEST_CASE("stop: before anything is under way it ends the run at its checkpoint", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  master.stop();
  REQUIRE(master.outcome() == Outcome::kStopped);
}

TEST_CASE("stop: the open round is finished, the next is not begun", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  const SessionId ann = master.join("ann");
  REQUIRE(master.run_worker());
  master.stop();
  REQUIRE_FALSE(master.done.has_value());
  REQUIRE(master.core().progress().stage == RunStage::kStopping);
  master.settle();
  REQUIRE(master.outcome() == Outcome::kStopped);
  REQUIRE(master.core().checkpoint() == 1);
  REQUIRE_FALSE(contains(master.worked, "F3"));
  REQUIRE(master.take<Goodbye>(ann).code == ErrorCode::kShuttingDown);
  REQUIRE_THAT(master.done->error.message, Catch::Contains("checkpoint 1 of 4"));
}

TEST_CASE("stop: a second one abandons the open round, and says so", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  master.join("ann");
  master.run_worker();
  master.stop();
  master.stop();
  REQUIRE(master.outcome() == Outcome::kAbandoned);
  REQUIRE_THAT(master.done->error.message, Catch::Contains("round 0 is abandoned"));
}

TEST_CASE("stop: a round that does not become whole in time is abandoned", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  const SessionId ann = master.join("ann");
  master.run_worker();
  master.hold(ann);
  master.stop();
  for (Millis waited{0}; waited < tiny_core_config().stop_grace - Millis(1'000);
       waited += Millis(1'000)) {
    master.say(ann, Heartbeat{});
    master.tick(Millis(1'000));
    REQUIRE_FALSE(master.done.has_value());
  }
  master.say(ann, Heartbeat{});
  master.tick(Millis(1'000));
  REQUIRE(master.outcome() == Outcome::kAbandoned);
}

TEST_CASE("stop: an evaluation is not waited for, and comes again after a resume", "[master]") {
  CoreConfig settings = tiny_core_config();
  settings.test_points = 10;
  MasterDriver master(tiny_model(), settings);
  const SessionId ann = master.join("ann");
  while (master.count<EvalUnit>(ann) == 0) {
    REQUIRE((master.run_worker() || master.run_storage() || master.serve(ann)));
  }
  master.stop();
  REQUIRE(master.outcome() == Outcome::kStopped);
  REQUIRE(master.core().checkpoint() == 2);
}

TEST_CASE("stop: nothing comes out after the end", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  const SessionId ann = master.join("ann");
  finish(master);
  // The driver fails on any effect after Done.
  master.say(ann, Heartbeat{});
  master.tick(Millis(100'000));
  master.stop();
  REQUIRE(master.outcome() == Outcome::kFinished);
}

TEST_CASE("stop: a failed task ends the run with its error", "[master]") {
  const ModelConfig model = tiny_model();
  MasterCore core(model, tiny_core_config(model), {});
  const Effects effects = core.handle(TaskFailed{{ErrorCode::kIo, "the disk is full"}}, Instant{});
  const auto& done = std::get<Done>(effects.back());
  REQUIRE(done.outcome == Outcome::kFailed);
  REQUIRE(done.error.message == "the disk is full");
}

// ---- Resuming ----------------------------------------------------------------------------------

TEST_CASE("resume: training goes on after the checkpoint", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config(), {3, false});
  master.join("ann");
  finish(master);
  REQUIRE(master.worked == std::vector<std::string>{"F8", "F9", "B8", "B9", "C3"});
}

TEST_CASE("resume: a checkpoint whose evaluation is missing is evaluated first", "[master]") {
  CoreConfig settings = tiny_core_config();
  settings.test_points = 4;
  MasterDriver master(tiny_model(), settings, {2, false});
  master.join("ann");
  finish(master);
  REQUIRE(master.worked.front() == "E0");
  REQUIRE(position(master.worked, "X") < position(master.worked, "F5"));
  REQUIRE(master.notices<Evaluated>().size() == 2);
}

TEST_CASE("resume: a checkpoint whose evaluation is on record is not evaluated again", "[master]") {
  CoreConfig settings = tiny_core_config();
  settings.test_points = 4;
  MasterDriver master(tiny_model(), settings, {2, true});
  master.join("ann");
  finish(master);
  REQUIRE(master.worked.front() == "F5");
  REQUIRE(master.notices<Evaluated>().size() == 1);
}

TEST_CASE("resume: a run that only lacks its last evaluation gets just that", "[master]") {
  CoreConfig settings = tiny_core_config();
  settings.test_points = 4;
  MasterDriver master(tiny_model(), settings, {4, false});
  master.join("ann");
  finish(master);
  REQUIRE(master.worked == std::vector<std::string>{"E0", "S0", "X"});
}

TEST_CASE("resume: a run that is complete is finished at once", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config(), {4, false});
  master.join("ann");
  REQUIRE(master.outcome() == Outcome::kFinished);
}

}  // namespace gleaner

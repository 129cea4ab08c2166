#include "master/core/evaluations.hpp"

#include <catch2/catch.hpp>

#include "tests/support/tiny_run.hpp"

namespace gleaner {
namespace {

// Four rounds: checkpoints 2 and 4 end an epoch.
std::vector<RoundIndex> owed(CoreConfig config, ResumePoint resume = {}) {
  const RunSetup run(tiny_model(), std::move(config), {});
  const Evaluations evaluations(run, resume);
  std::vector<RoundIndex> checkpoints;
  for (RoundIndex checkpoint = 0; checkpoint <= 5; ++checkpoint) {
    if (evaluations.owes(checkpoint)) checkpoints.push_back(checkpoint);
  }
  return checkpoints;
}

CoreConfig with_points(std::uint32_t every_epochs) {
  CoreConfig config = tiny_core_config();
  config.test_points = 6;
  config.evaluate_every_epochs = every_epochs;
  return config;
}

}  // namespace

TEST_CASE("evaluations: every N epochs and at the end, and never without test examples",
          "[evaluations]") {
  REQUIRE(owed(tiny_core_config()).empty());
  REQUIRE(owed(with_points(1)) == std::vector<RoundIndex>{2, 4});
  REQUIRE(owed(with_points(2)) == std::vector<RoundIndex>{4});
  REQUIRE(owed(with_points(3)) == std::vector<RoundIndex>{4});
  REQUIRE(owed(with_points(0)) == std::vector<RoundIndex>{4});
}

TEST_CASE("evaluations: a resume owes its checkpoint's unless that is on record", "[evaluations]") {
  ResumePoint resume;
  resume.checkpoint = 2;
  REQUIRE(owed(with_points(1), resume) == std::vector<RoundIndex>{2, 4});
  resume.is_evaluated = true;
  REQUIRE(owed(with_points(1), resume) == std::vector<RoundIndex>{4});
}

TEST_CASE("evaluations: one that is done is owed no more, and is recorded when the store says so",
          "[evaluations]") {
  CoreConfig config = with_points(1);
  SECTION("of every test example") {
    config.evaluate_sample = 7;
  }
  SECTION("of a sample") {
    config.evaluate_sample = 5;
  }
  const RunSetup run(tiny_model(), config, {});
  Evaluations evaluations(run, {});
  REQUIRE(evaluations.is_recorded());
  evaluations.begin(Instant{});
  REQUIRE(evaluations.current()->points() == std::min<std::uint64_t>(config.evaluate_sample, 6));
  Evaluation result;
  result.precision.p[0] = 0.25;
  evaluations.finished(2, result);
  REQUIRE_FALSE(evaluations.current());
  REQUIRE_FALSE(evaluations.owes(2));
  REQUIRE(evaluations.owes(4));
  REQUIRE(evaluations.last().precision.at_1() == 0.25);
  REQUIRE_FALSE(evaluations.is_recorded());
  evaluations.recorded();
  REQUIRE(evaluations.is_recorded());
}

}  // namespace gleaner

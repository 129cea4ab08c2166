#include "master/see/progress_source.hpp"

#include <catch2/catch.hpp>
#include <cmath>

namespace gleaner {
namespace {

constexpr Instant kStart{Micros{5'000'000}};

RunProgress training(std::uint64_t examples) {
  RunProgress core;
  core.stage = RunStage::kTraining;
  core.rounds = 10;
  core.batches = 1000;
  core.batch = examples / 100;
  core.epochs = 2;
  core.examples = examples;
  core.unit_bytes_down = examples * 2 * 112;
  core.unit_bytes_up = examples * 2 * 150;
  core.volunteers = 2;
  return core;
}

RunProgress measured(ProgressSource& source, RunProgress run, Instant now) {
  source.complete(run, now);
  return run;
}

}  // namespace

TEST_CASE("progress source: speed and bytes come from the last seconds of training",
          "[progress_source]") {
  ProgressSource progress;
  RunProgress s = measured(progress, training(0), kStart);
  REQUIRE(s.examples_per_second < 0);
  REQUIRE(s.eta_seconds < 0);
  // A slow start that has left the window does not count.
  for (int tenth = 1; tenth <= 100; ++tenth) {
    s = measured(progress, training(static_cast<std::uint64_t>(tenth)),
                 kStart + Millis{tenth * 100});
  }
  for (int tenth = 1; tenth <= 120; ++tenth) {
    const auto examples = static_cast<std::uint64_t>(100 + tenth * 50);
    s = measured(progress, training(examples), kStart + Millis{10'000 + tenth * 100});
  }
  REQUIRE(s.examples_per_second == Approx(500));
  REQUIRE(s.bytes_down == Approx(112));
  REQUIRE(s.bytes_up == Approx(150));
  REQUIRE(s.batch == 61);
  REQUIRE(s.eta_seconds == Approx((1000 - 61) * 100 / 500.0).epsilon(0.15));
}

TEST_CASE("progress source: a pause does not count as slow training", "[progress_source]") {
  ProgressSource progress;
  measured(progress, training(0), kStart);
  REQUIRE(measured(progress, training(1000), kStart + Millis{2000}).examples_per_second ==
          Approx(500));
  RunProgress evaluating = training(1000);
  evaluating.stage = RunStage::kEvaluating;
  const RunProgress during = measured(progress, evaluating, kStart + Millis{4000});
  REQUIRE(during.stage == RunStage::kEvaluating);
  REQUIRE(during.examples_per_second == Approx(500));
  RunProgress waiting = training(1000);
  waiting.waiting_for = "a volunteer";
  REQUIRE(measured(progress, waiting, kStart + Millis{8000}).waiting_for == "a volunteer");
  measured(progress, training(1000), kStart + Millis{60'000});
  REQUIRE(measured(progress, training(2000), kStart + Millis{61'000}).examples_per_second ==
          Approx(1000));
}

TEST_CASE("progress source: the ETA counts what batches and evaluations have taken",
          "[progress_source]") {
  // Ten epochs of 100 batches of 0.2 s, 6 s of them idle before the store; each with 15 s of
  // evaluation.
  Eta eta;
  RunProgress core;
  core.batches = 1000;
  core.epochs = 10;
  core.volunteers = 2;
  Instant now = kStart;
  const double whole = 10 * (100 * 0.2 + 6 + 15);
  const auto stay = [&](RunStage stage, double seconds) {
    core.stage = stage;
    for (int tenth = 0; tenth < static_cast<int>(seconds * 10 + 0.5); ++tenth) {
      eta.note(core, now);
      now += Millis{100};
    }
    eta.note(core, now);
  };
  for (core.epoch = 0; core.epoch < 10; ++core.epoch) {
    for (int batch = 0; batch < 100; ++batch) {
      stay(RunStage::kTraining, 0.2);
      ++core.batch;
      const double left = whole - seconds_in(now - kStart);
      INFO("epoch " << core.epoch << ", batch " << batch << ", left " << left);
      if (core.epoch >= 2) REQUIRE(std::abs(eta.seconds(core) - left) < 30);
    }
    stay(RunStage::kTraining, 6);
    stay(RunStage::kEvaluating, 15);
  }
  REQUIRE(eta.seconds(core) < 1);
}

}  // namespace gleaner

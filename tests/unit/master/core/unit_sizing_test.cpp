#include <catch2/catch.hpp>

#include "master/core/units.hpp"
#include "tests/support/tiny_run.hpp"

namespace gleaner {
namespace {

CoreConfig sizing_config() {
  CoreConfig config = tiny_core_config();
  config.batches_per_unit_max = 4;
  config.unit_target = Micros(1'000);
  return config;
}

// Batches of two examples; the first three have activations, and none is applied.
struct SizingScene {
  RunSetup run{tiny_model(), sizing_config(), {}};
  Pipeline pipeline{run.plan, run.map, 0};
  UnitSizing sizing{run, pipeline};

  SizingScene() {
    for (BatchIndex batch = 0; batch < 3; ++batch) {
      ForwardDone done;
      done.batch = batch;
      done.codes = std::make_shared<const QuantizedActivations>(
          tiny_codes(run.plan, batch, run.model.hidden));
      pipeline.forward_done(done);
    }
  }
};

}  // namespace

TEST_CASE("unit sizing: as many batches as fit the target, at least one, at most the limit",
          "[units]") {
  const SizingScene scene;
  SessionState session;
  REQUIRE(scene.sizing.batches(session, 0, 1) == 1);  // not measured yet
  session.speed = 2'000;                              // one batch on one shard takes 1,000 us
  REQUIRE(scene.sizing.batches(session, 0, 1) == 1);
  session.speed = 5'999;
  REQUIRE(scene.sizing.batches(session, 0, 1) == 2);
  session.speed = 6'001;
  REQUIRE(scene.sizing.batches(session, 0, 1) == 3);
  REQUIRE(scene.sizing.batches(session, 0, 3) == 1);
  session.speed = 1e9;
  REQUIRE(scene.sizing.batches(session, 0, 1) == 4);
}

TEST_CASE("unit sizing: what is outstanding covers the round trip, within limits", "[units]") {
  const SizingScene scene;
  SessionState session;
  REQUIRE(scene.sizing.batches_in_flight_max(session, 1) == 8);
  session.speed = 2'000;
  session.round_trip_us = 3'000;
  REQUIRE(scene.sizing.batches_in_flight_max(session, 1) == 11);
  REQUIRE(scene.sizing.batches_in_flight_max(session, 0) == 11);
  REQUIRE(scene.sizing.batches_in_flight_max(session, 3) == 9);
  session.round_trip_us = 1'000'000;
  REQUIRE(scene.sizing.batches_in_flight_max(session, 1) == 16);
}

TEST_CASE("unit sizing: the first result sets the speed, and later ones move it by 3 %",
          "[units]") {
  SessionState session;
  UnitInFlight unit;
  unit.leases.resize(2);
  unit.batches = 2;
  unit.sent = Instant(Micros(1'000'000));
  UnitSizing::measure(session, unit, 4, 1'000, Instant(Micros(1'003'000)));
  REQUIRE(session.speed == Approx(8'000));
  REQUIRE(session.compute_us == Approx(500));
  REQUIRE(session.transit_us == Approx(1'000));
  // Sent before the last answer: the volunteer had older work until then.
  UnitSizing::measure(session, unit, 4, 500, Instant(Micros(1'003'500)));
  REQUIRE(session.speed == Approx(0.97 * 8'000 + 0.03 * 16'000));
  REQUIRE(session.transit_us == Approx(970));
  // A unit said to have taken no time tells nothing about speed.
  const double speed = session.speed;
  UnitSizing::measure(session, unit, 4, 0, Instant(Micros(1'004'000)));
  REQUIRE(session.speed == speed);
}

}  // namespace gleaner

// Runs to be planned and machines to plan them on.
#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "common/limits.hpp"
#include "common/model/recipe.hpp"
#include "tools/plan/plan.hpp"

namespace gleaner {

// Nothing takes time but what a test sets.
inline const StepCosts kFree{.visit = 0, .around = 0, .add_unit = 0, .message = 0};

// The sizes that schema/README.md and the simulation name: half of the units on, 14 bits an entry
// of the gradient.
inline void set_message_sizes(PlanInput& input) {
  input.rectified_on = 0.5;
  input.model.gradient_step_log2 = -13;
}

// Every neuron of 1,000 is trained, in rounds of ten batches of 100.
inline PlanInput small_input() {
  PlanInput input;
  input.model.points = 1'000;
  input.model.features = 1'000;
  input.model.labels = 1'000;
  input.model.sampling = Sampling::kAll;
  input.model.batch_examples = 100;
  input.model.round_batches = 10;
  input.model.staleness = 16;
  input.facts.features_per_point = 10;
  input.facts.labels_per_point = 2;
  input.volunteers = {.count = 4, .cores = 1, .mbit = 0};
  set_message_sizes(input);
  return input;
}

// The costs of a real machine, roughly.
inline StepCosts usual_costs() {
  return {.visit = 30e-9, .feature = 210e-9};
}

inline Plan planned(const PlanInput& input, const StepCosts& costs) {
  const auto plan = make_plan(input, costs);
  REQUIRE(plan.ok());
  return *plan;
}

inline std::string refusal(const PlanInput& input) {
  const auto plan = make_plan(input, kFree);
  REQUIRE_FALSE(plan.ok());
  return plan.error().message;
}

// The calm run of tests/sim/README.md, "Throughput under churn", with `volunteers`; their links'
// latencies are drawn from 5 to 50 ms one way, and the slowest counts.
inline PlanInput simulated(std::uint32_t volunteers, double mbit) {
  PlanInput input;
  input.model.points = std::uint64_t{256} * 6'400;
  input.model.features = 8;
  input.model.labels = 52'946;
  input.model.output_shards = std::max(16u, 2 * volunteers);
  input.model.batch_examples = 256;
  input.model.round_batches = 64;
  input.model.staleness = 16;
  input.facts.features_per_point = 1;
  input.facts.labels_per_point = 10;
  input.volunteers = {.count = volunteers, .cores = 1, .mbit = mbit};
  input.round_trip = 2 * (0.005 + 0.045 * volunteers / (volunteers + 1));
  input.master.mbit = 1'000;
  set_message_sizes(input);
  return input;
}

inline StepCosts simulated_costs() {
  StepCosts costs = kFree;
  costs.visit = 100e-6 / 1'010;
  costs.feature = 4e-6;
  return costs;
}

}  // namespace gleaner

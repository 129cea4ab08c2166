// Runs to be planned and machines to plan them on.
#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "common/counter_random.hpp"
#include "common/limits.hpp"
#include "common/model/recipe.hpp"
#include "tools/plan/plan.hpp"
#include "tools/plan/plan_report.hpp"

namespace gleaner {

// Nothing takes time but what a test sets.
inline const MachineCosts kFree;

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
  input.features_per_point = 10;
  input.labels_per_point = 2;
  input.volunteers = {.count = 4, .cores = 1, .mbit = 0};
  set_message_sizes(input);
  return input;
}

// The costs of a real machine, roughly.
inline MachineCosts usual_costs() {
  MachineCosts c;
  c.visit = 20e-9;
  c.row = {{{16'384, 90e-9}, {65'536, 120e-9}, {262'144, 150e-9}}};
  c.scan = 1e-9;
  c.finish = 40e-9;
  c.query = 800e-9;
  c.rehash_row = 400e-9;
  c.commit_row = 500e-9;
  for (auto& layer : c.row) layer.feature = 210e-9;
  c.input_commit_row = c.encode_row = c.decode_row = 300e-9;
  c.pack_codes = c.unpack_codes = 60e-9;
  c.pack_activations = c.unpack_activations = c.code_activations = 100e-9;
  c.pack_unit_gradient = c.unpack_unit_gradient = 130e-9;
  c.message = 30e-6;
  c.message_byte = 0.5e-9;
  c.pack_gradient = c.add_gradient = 130e-9;
  c.stage_row = 1e-6;
  c.fold_row = 5e-6;
  c.store_row_program = 4e-6;
  c.read_row = 3e-6;
  return c;
}

inline Plan planned(const PlanInput& input, const MachineCosts& costs) {
  const auto plan = make_plan(input, costs);
  REQUIRE(plan.ok());
  return *plan;
}

inline const Bound& bound_of(const Plan& plan, Resource resource) {
  return plan.bounds[static_cast<std::size_t>(resource)];
}

inline std::string refusal(const PlanInput& input) {
  const auto plan = make_plan(input, kFree);
  REQUIRE_FALSE(plan.ok());
  return plan.error().message;
}

// The calm run of tests/sim/README.md, "Throughput under churn", with `volunteers`; their links'
// latencies are drawn from 5 to 50 ms one way, and the slowest is the one that counts.
inline PlanInput simulated(std::uint32_t volunteers, double mbit) {
  PlanInput input;
  input.model.points = std::uint64_t{256} * 6'400;
  input.model.features = 8;
  input.model.labels = 52'946;
  input.model.output_shards = std::max(16u, 2 * volunteers);
  input.model.batch_examples = 256;
  input.model.round_batches = 64;
  input.model.staleness = 16;
  input.features_per_point = 1;
  input.labels_per_point = 10;
  input.volunteers = {.count = volunteers, .cores = 1, .mbit = mbit};
  input.round_trip = 2 * (0.005 + 0.045 * volunteers / (volunteers + 1));
  input.master.mbit = 1'000;
  set_message_sizes(input);
  return input;
}

inline MachineCosts simulated_costs() {
  MachineCosts costs;
  costs.row = {{{16'384, 0}, {65'536, 0}, {262'144, 0}}};
  costs.visit = 100e-6 / 1'010;
  for (auto& layer : costs.row) layer.feature = 4e-6;
  costs.stage_row = 0.06 / 52'946;
  costs.fold_row = 0.2 / 52'946;
  return costs;
}

}  // namespace gleaner

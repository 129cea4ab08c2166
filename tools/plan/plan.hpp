// The expected speed and size of a run: a function of the model, the data, the machines and links,
// and the costs of a training step on one core. No I/O. PLAN.md lists the formulas. Units: seconds,
// bytes, Mbit/s (10^6 bits), unless a name says otherwise.
#pragma once

#include <cstdint>

#include "common/model/recipe.hpp"
#include "common/result.hpp"
#include "common/train/wide/wide_trainer.hpp"

namespace gleaner {

inline constexpr double kGib = 1 << 30;

// Seconds of one core, at the width of the run's hidden layer.
struct StepCosts {
  double visit = 30e-9;    // an active neuron of an example, with its part of all other work
  double feature = 0;      // a feature of an example: both passes of the input layer
  double around = 8e-9;    // a unit of an example on each volunteer: unpacking, hashing, packing
  double add_unit = 1e-9;  // the same on the master: adding a volunteer's gradient
  double message = 30e-6;  // sending or receiving a message, on each side
};

// A number of equal machines.
struct Machines {
  std::uint32_t count = 1;
  std::uint32_t cores = 1;
  double mbit = 0;    // of each link, in each direction; 0: no limit
  double memory = 0;  // of each; 0: no limit
  double disk = 0;    // the master's, for the store; 0: no limit
  double deaths = 0;  // of each, per hour, without a farewell
};

struct PlanInput {
  ModelConfig model{};         // a valid one
  DatasetFacts facts{};        // means per example; the model has the counts
  WideWeights wide_weights{};  // without a hidden layer
  double rectified_on = 0.75;  // fraction of ReLU units that are not 0, before dropout
  Machines volunteers{};
  double round_trip = 0;  // between a volunteer and the master
  bool lends_input = false;
  Machines master{};  // one
};

// Bytes on the wire, per example unless a comment says otherwise.
struct TrafficPlan {
  double unit_down = 0;  // per volunteer
  double unit_up = 0;
  double commit_up = 0;
  double down = 0;  // per volunteer, all traffic, with acknowledgements
  double up = 0;
  double download = 0;  // per volunteer, once: its shards when all rows are stored
};

struct Plan {
  double examples_per_second = 0;  // while nobody dies; infinite if nothing takes time
  double round_seconds = 0;
  double epoch_seconds = 0;    // without evaluation
  double death_seconds = 0;    // standstill of the run per death
  double deaths_fraction = 0;  // of the run's time, lost to deaths
  double run_seconds = 0;      // with deaths
  double trip_seconds = 0;     // of a single batch, from its features to its update
  const char* limit = "";      // what bounds the speed
  double active = 0;           // neurons per example
  double holders = 0;          // volunteers that have shards
  TrafficPlan traffic;
  double master_memory = 0;
  double volunteer_memory = 0;  // of the volunteer with the most shards
  double store_content = 0;
  double store_most = 0;  // with unmerged files, a staged round and the kept best
};

// An error says what to do about an invalid model, or too little memory or disk. Requires a
// volunteer, and a core per machine.
Result<Plan> make_plan(const PlanInput& input, const StepCosts& costs);

}  // namespace gleaner

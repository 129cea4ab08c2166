// The parts of a plan: the sizes of a run, the work and the bytes of its batches and rounds. Pure
// functions; tools/plan/PLAN.md lists the formulas.
#pragma once

#include <array>

#include "tools/plan/plan.hpp"

namespace gleaner {

// How many times as much there is of each resource.
struct Scale {
  std::array<double, kResources.size()> of;

  Scale() { of.fill(1); }

  double& operator[](Resource r) { return of[static_cast<std::size_t>(r)]; }

  double operator[](Resource r) const { return of[static_cast<std::size_t>(r)]; }
};

// The sizes that everything else is made of.
struct Shape {
  double labels, features, hidden, tables;
  double batch;    // examples
  double batches;  // a round
  double epoch_batches;
  double active;                        // neurons an example
  double drawn;                         // of them, at random from all
  double rows_a_batch;                  // visited
  double output_rows, input_rows;       // touched in a round
  double stored_rows, stored_features;  // at the end of the run
  double shards, holders, held;  // output shards; volunteers that have some; the most one has
  double share;                  // of the layer, of the one with the most
  // These of the input layer; nothing where the master has it.
  double input_shards, input_holders, input_held, input_share;

  [[nodiscard]] double examples() const { return batch * batches; }

  [[nodiscard]] double rows() const { return output_rows + input_rows; }
};

Shape shape_of(const PlanInput& input, const Scale& scale);

// Bytes in the store of a row of each layer, table entry included, and of one that is staged.
struct StoredBytes {
  double output_row, input_row, staged_row;
};

StoredBytes stored_bytes(const PlanInput& input, const Shape& s);

// Output rows that `examples` examples reach.
double rows_reached(const Shape& s, double examples);
// Rows of the input layer that they reach.
double features_reached(double choices, double features);

// Seconds of one core.
struct Work {
  double layer;          // a batch on all output shards
  double input;          // a batch on all input shards, where volunteers hold them
  double volunteer;      // a batch, besides, on every holder of output shards
  double input_holder;   // a batch, besides, on every holder of input shards
  double worker;         // a batch, the master's worker
  double network;        // a batch, the master's other thread, for every holder of output shards
  double input_network;  // the same for every holder of input shards
  double output_commit;  // a round, on all volunteers together
  double input_commit;   // a round, on who holds the input layer
  double take_commits;   // a round, the master's other thread
  double store;          // a round: what its thread takes; of that and of merging, the processor
  double store_processor;
  double stage, fold;
};

// Seconds of an example on all output shards of one volunteer, hashed and packed, if its parts took
// together what each takes alone.
double step_seconds(const PlanInput& input, const MachineCosts& costs);

Traffic traffic_of(const PlanInput& input, const Shape& s);
Work work_of(const PlanInput& input, const MachineCosts& costs, const Shape& s, const Traffic& t);

}  // namespace gleaner

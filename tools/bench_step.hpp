// A whole training step, by the trainer that volunteers run, held against what its parts were
// measured to take. What it costs beyond is what the parts cost each other (caches, buffers, memory
// that is walked again) and, where all processors are busy, what these cost each other: a core's
// units, where two processors are one core, caches and memory.
#pragma once

#include <cstdint>

#include "common/kernels/kernels.hpp"
#include "tools/bench_loops.hpp"

namespace gleaner {

// Seconds of the parts of a step.
struct StepParts {
  double visit = 0;   // an active neuron of an example
  double row = 0;     // a row visited, a batch
  double scan = 0;    // a row whose visits are looked for, a batch
  double finish = 0;  // an example's gradient in a shard
  double rehash = 0;  // a row that is hashed anew
};

// Seconds of processor of an example in a layer of `rows`: the whole step by a thread for each
// processor, by one thread, and the sum of the parts.
std::vector<BenchLine> bench_step(const Kernels& kernels, const BenchShape& shape,
                                  std::uint32_t rows, const StepParts& parts);

}  // namespace gleaner

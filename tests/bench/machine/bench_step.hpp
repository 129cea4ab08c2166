// A whole training step, by the trainers that runs use, on points with a planted structure. What it
// costs beyond its parts is what these cost each other (caches, buffers, memory that is walked
// again), how a trained layer's neurons come to be shared, and, where all processors are busy, what
// these cost each other: a core's units, where two processors are one core, caches and memory.
#pragma once

#include <cstdint>
#include <vector>

#include "common/model/recipe.hpp"
#include "common/train/kernels.hpp"
#include "tests/bench/machine/bench_loops.hpp"

namespace gleaner {

// The run on which steps in a layer of `rows` are timed: the recipe's run on such data, in one long
// round of as many points as it takes to time this number of batches.
struct StepRun {
  DatasetFacts facts;
  ModelConfig model;
};

StepRun step_run(std::uint32_t hidden, std::uint32_t rows, std::uint32_t step_batches);

// Seconds of processor of an example in a layer of `rows`: on all output shards, with hashing and
// packing, by a thread for each processor and by one thread, and a feature's of the input layer.
std::vector<BenchLine> bench_step(const Kernels& kernels, const BenchShape& shape,
                                  std::uint32_t rows);

}  // namespace gleaner

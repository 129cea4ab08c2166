// A whole training step, by the trainers of runs, on examples with a planted structure. A step
// costs more than its parts: the parts compete for caches and buffers, a trained layer's neurons
// are shared, and busy processors compete for a core's units, caches and memory.
#pragma once

#include <cstdint>
#include <vector>

#include "common/model/recipe.hpp"
#include "common/train/kernels.hpp"
#include "tests/bench/machine/bench_loops.hpp"

namespace gleaner {

// The timed run with a layer of `rows`: the recipe's run on such data, in one round with enough
// examples for this number of batches.
struct StepRun {
  DatasetFacts facts;
  ModelConfig model;
};

StepRun step_run(std::uint32_t hidden, std::uint32_t rows, std::uint32_t step_batches);

// Processor seconds in a layer of `rows`: per example on all output shards, with hashing and
// packing, by a thread per processor and by one thread; and per feature of the input layer.
std::vector<BenchLine> bench_step(const Kernels& kernels, const BenchShape& shape,
                                  std::uint32_t rows);

}  // namespace gleaner

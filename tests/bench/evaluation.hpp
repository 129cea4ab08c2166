// Precision of a run in one process on the test set: over all labels, and by their frequency.
#pragma once

#include <array>
#include <cstdint>

#include "common/data/packed_dataset.hpp"
#include "common/model/precision.hpp"
#include "common/result.hpp"
#include "tests/bench/frequency_buckets.hpp"
#include "tests/bench/machine/one_process_run.hpp"

namespace gleaner {

struct HeldOutPrecision {
  std::uint64_t evaluated = 0;  // examples with a label
  Precision whole;
  std::array<Precision, kFrequencyBuckets.size()> buckets;
};

// On the first `points_max` examples of `test`, after training on `train_points`.
Result<HeldOutPrecision> evaluate(OneProcessRun& run, std::uint64_t train_points,
                                  const PackedDataset& test, std::uint64_t points_max);

// A run on a packed file, which outlives it.
OneProcessRun run_on(const ModelConfig& config, const PackedDataset& train, ThreadPool& pool);

}  // namespace gleaner

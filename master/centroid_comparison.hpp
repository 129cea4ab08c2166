// At the end of a run: is the network at least as good as the nearest label centroids, which need
// no training? Asked of the same test examples, so that a difference of one percent shows in 4,000.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "common/data/packed_dataset.hpp"
#include "common/result.hpp"
#include "master/see/console.hpp"
#include "master/see/run_events.hpp"
#include "master/serving_loop.hpp"
#include "master/shell/worker.hpp"

namespace gleaner {

// Compares as many of `judged`, from the first on, as ten seconds allow. The error says why there
// is no comparison: the training data cannot be read, it is too large, or `is_stopping` was set.
// Any thread; `train` and the test set are only read.
Result<CentroidComparison> compare_with_centroids(const PackedDataset& train,
                                                  std::span<const JudgedExample> judged,
                                                  std::uint64_t memory_bytes,
                                                  const std::atomic<bool>& is_stopping);

// Sets what the nearest label centroids get on the examples that the last evaluation has judged;
// where that is not known, the console says why.
void compare_with_centroids(RunFinished& finished, const PackedDataset& train,
                            std::span<const JudgedExample> judged, const ServingLoop& aside,
                            Console& console);

}  // namespace gleaner

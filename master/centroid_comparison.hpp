// At the end of a run the network is compared with the nearest label centroids, which need no
// training. Both answer the same test examples, so that a difference of one percent shows in 4,000
// examples.
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

// Compares the first examples of `judged`, as many as ten seconds allow. An error names the reason
// for no comparison: the training data cannot be read, it is too large, or `is_stopping` was set.
// Any thread; only reads `train` and the test set.
Result<CentroidComparison> compare_with_centroids(const PackedDataset& train,
                                                  std::span<const JudgedExample> judged,
                                                  std::uint64_t memory_bytes,
                                                  const std::atomic<bool>& is_stopping);

// Sets the figures of the nearest label centroids on the examples that the last evaluation judged.
// If there are none, tells the console why.
void compare_with_centroids(RunFinished& finished, const PackedDataset& train,
                            std::span<const JudgedExample> judged, const ServingLoop& aside,
                            Console& console);

}  // namespace gleaner

// At the end of a run: is the network at least as good as the nearest label centroids, which need
// no training? Asked of the same test examples, so that a difference of one percent shows in 4,000.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <vector>

#include "common/dataset/packed_dataset.hpp"
#include "common/result.hpp"
#include "master/console/progress_events.hpp"

namespace gleaner {

// Test examples that are compared at most.
inline constexpr std::size_t kComparedMax = 4000;

// A test example with labels, and whether the network's first answer is one of them. Its view
// points into the test set.
struct JudgedExample {
  ExampleView example;
  bool is_hit = false;
};

// Compares as many of `judged`, from the first on, as ten seconds allow. The error says why there
// is no comparison: the training data cannot be read, it is too large, or `is_stopping` was set.
// Any thread; `train` and the test set are only read.
Result<CentroidComparison> compare_with_centroids(const PackedDataset& train,
                                                  std::span<const JudgedExample> judged,
                                                  std::uint64_t memory_bytes,
                                                  const std::atomic<bool>& is_stopping);

}  // namespace gleaner

// Trains a run on from its checkpoint in this process, without a network: the same tasks in the
// same order as a master issues, so the same bits. One thread; loops run on the pool.
#pragma once

#include <functional>
#include <vector>

#include "common/data/packed_dataset.hpp"
#include "common/ids.hpp"
#include "common/result.hpp"
#include "common/thread_pool.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// Folds every round before checkpoint `to` into `run`, which is open for writing, with those of
// `rate_cuts` that it does not have yet. `train` is the data the run was made for. `on_batch` is
// called after each batch.
Result<void> retrain(RunStore& run, const PackedDataset& train, RoundIndex to,
                     const std::vector<BatchIndex>& rate_cuts, ThreadPool& pool,
                     const std::function<void()>& on_batch);

}  // namespace gleaner

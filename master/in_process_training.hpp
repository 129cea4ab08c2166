// Trains a run on from its checkpoint in this process, without a network: a master's tasks in a
// master's order, so the same bits. One thread; loops run on the pool.
#pragma once

#include <functional>
#include <vector>

#include "common/data/packed_dataset.hpp"
#include "common/ids.hpp"
#include "common/result.hpp"
#include "common/thread_pool.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// Folds every round before checkpoint `to` into `run`, which is open for writing, and adds the
// `rate_cuts` that `run` lacks. `train` is the run's data set. Calls `on_batch` after each batch.
Result<void> train_in_process(RunStore& run, const PackedDataset& train, RoundIndex to,
                              const std::vector<BatchIndex>& rate_cuts, ThreadPool& pool,
                              const std::function<void()>& on_batch);

}  // namespace gleaner

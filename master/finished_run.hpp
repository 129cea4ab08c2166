// The result of a run, read from its store.
#pragma once

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <span>

#include "common/result.hpp"
#include "master/console/progress.hpp"
#include "master/console/progress_events.hpp"
#include "master/tasks/centroid_comparison.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// All but store, best_store, seconds and already.
Result<RunFinished> finished_run(RunStore& run);

// Where to do long work; see run_aside.
struct Aside {
  asio::io_context& io;
  asio::signal_set& signals;
};

// Sets what the nearest label centroids get on the examples that the last evaluation has judged;
// where that is not known, the console says why.
void compare_with_centroids(RunFinished& finished, const PackedDataset& train,
                            std::span<const JudgedExample> judged, const Aside& aside,
                            Console& console);

}  // namespace gleaner

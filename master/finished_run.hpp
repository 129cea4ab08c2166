// The result of a run, read from its store.
#pragma once

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <memory>
#include <span>

#include "common/result.hpp"
#include "master/console/progress.hpp"
#include "master/console/progress_events.hpp"
#include "master/tasks/centroid_comparison.hpp"
#include "storage/engine/held_folder.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// The run as a reader finds it under the name of its folder. kIdentity when the folder is not in
// its place, kCorrupt when what is there is not at the checkpoint of `run`, which wrote it.
Result<std::unique_ptr<RunStore>> read_whole(const RunStore& run, const HeldFolder& folder);

// Fills all fields but store, best_store, seconds and already. `run` is as read_whole() gives it.
Result<RunFinished> finished_run(const RunStore& written, const HeldFolder& folder);

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

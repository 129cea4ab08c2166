// The result of a run, read from its store.
#pragma once

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <functional>
#include <memory>
#include <span>

#include "common/result.hpp"
#include "master/see/console.hpp"
#include "master/see/run_events.hpp"
#include "master/shell/worker.hpp"
#include "storage/engine/held_folder.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// Long work after the training, while the I/O thread goes on serving the console.

// Does `work` on a thread made for it and returns when it is done. Called on the I/O thread, whose
// `io` is run meanwhile; a signal calls `on_signal`, once, on the I/O thread.
void run_while_serving(asio::io_context& io, asio::signal_set& signals,
                       const std::function<void()>& work, const std::function<void()>& on_signal);

// The run as a reader finds it under the name of its folder. kIdentity when the folder is not in
// its place, kCorrupt when what is there is not at the checkpoint of `run`, which wrote it.
Result<std::unique_ptr<RunStore>> read_whole(const RunStore& run, const HeldFolder& folder);

// Fills all fields but store, best_store, seconds and already. `run` is as read_whole() gives it.
Result<RunFinished> finished_run(const RunStore& written, const HeldFolder& folder);

// Where to do long work; see run_while_serving.
struct ServingLoop {
  asio::io_context& io;
  asio::signal_set& signals;
};

// Sets what the nearest label centroids get on the examples that the last evaluation has judged;
// where that is not known, the console says why.
void compare_with_centroids(RunFinished& finished, const PackedDataset& train,
                            std::span<const JudgedExample> judged, const ServingLoop& aside,
                            Console& console);

}  // namespace gleaner

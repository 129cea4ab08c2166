// The result of a run, read from its store.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/signal_set.hpp>
#include <asio/thread_pool.hpp>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "common/data/packed_dataset.hpp"
#include "common/result.hpp"
#include "master/see/console.hpp"
#include "master/see/run_events.hpp"
#include "master/shell/worker.hpp"
#include "storage/engine/held_folder.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// Long work after the training, while the I/O thread goes on serving the console.

// Runs `work`, which takes long, on a thread of its own, and returns when it is done. Meanwhile the
// calling I/O thread runs `io` and thereby serves the console. A signal calls `on_signal` once, on
// the I/O thread.
inline void run_while_serving(asio::io_context& io, asio::signal_set& signals,
                              const std::function<void()>& work,
                              const std::function<void()>& on_signal) {
  io.restart();
  signals.async_wait([on_signal](asio::error_code error, int) {
    if (!error) on_signal();
  });
  bool is_over = false;
  asio::thread_pool thread{1};
  asio::post(thread, [&, guard = asio::make_work_guard(io)] {
    work();
    asio::post(io, [&is_over] { is_over = true; });
  });
  while (!is_over) io.run_one();
  signals.cancel();
  // Runs cancelled handlers: afterwards nothing refers to `on_signal` any more.
  io.restart();
  io.poll();
}

// The loop that serves during long work; see run_while_serving.
struct ServingLoop {
  asio::io_context& io;
  asio::signal_set& signals;
};

// Opens the run by the name of its folder, as a reader would. kIdentity when the folder is not in
// its place; kCorrupt when its contents are not at the checkpoint of `run`, which wrote them.
Result<std::unique_ptr<RunStore>> read_whole(const RunStore& run, const HeldFolder& folder);

// Fills all fields but store, best_store, seconds and already. `written` is the run's own store.
Result<RunFinished> finished_run(const RunStore& written, const HeldFolder& folder);

// At the end of a run the network is compared with the nearest label centroids, which need no
// training. Both answer the same test examples, so that a difference of one percent shows in 4,000
// examples.

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

// Runs the master's core on the machine's clock, with a thread for worker tasks and a thread for
// storage tasks. I/O thread only.
#pragma once

#include <asio/io_context.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "common/float_state.hpp"
#include "common/net/io_clock_and_threads.hpp"
#include "master/shell/core_runner.hpp"
#include "master/shell/persister.hpp"
#include "master/shell/worker.hpp"

namespace gleaner {

// The clock and the threads of a runner. They outlive it.
struct RunnerThreads {
  RunnerThreads(asio::io_context& io, Worker& worker, Persister& persister)
      : clock(io),
        worker_thread(io,
                      [&worker, is_ready = false](const WorkerTask& task) mutable {
                        if (!std::exchange(is_ready, true)) set_float_state();
                        return worker.run(task);
                      }),
        storage_thread(io,
                       [&](const std::shared_ptr<const StorageTask>& task) -> std::optional<Event> {
                         // Volunteers of this process read the data files too.
                         if (const auto whole = worker.check_data(); !whole) {
                           return TaskFailed{whole.error()};
                         }
                         return persister.run(*task);
                       }) {}

  IoClock clock;
  IoTaskThread<WorkerTask, Event> worker_thread;
  IoTaskThread<std::shared_ptr<const StorageTask>, std::optional<Event>> storage_thread;
};

class ThreadedRunner : public RunnerThreads, public CoreRunner {
 public:
  // Everything outlives the runner. Only its threads use `worker` and `persister`. The destructor
  // waits for tasks under way.
  ThreadedRunner(asio::io_context& io, MasterCore& core, Worker& worker, Persister& persister,
                 Observer observer)
      : RunnerThreads(io, worker, persister),
        CoreRunner(clock, core, worker_thread, storage_thread, std::move(observer)) {}
};

}  // namespace gleaner

// A volunteer's client with the machine's clock and compute threads. I/O thread only; the executor
// has a thread of its own.
#pragma once

#include <asio/io_context.hpp>
#include <cstdint>
#include <utility>

#include "common/float_state.hpp"
#include "common/net/io_clock_and_threads.hpp"
#include "common/thread_pool.hpp"
#include "volunteer/client.hpp"
#include "volunteer/executor.hpp"
#include "volunteer/lane_threads.hpp"

namespace gleaner::volunteer {

struct ComputeOptions {
  std::uint32_t threads = 1;
  int nice = kVolunteerNice;  // of the threads that compute
  bool pins_threads = false;  // each to a processor
  std::uint64_t memory_bytes = 0;
  ExampleStoreOptions points{};
};

// The clock and the threads of a client. They outlive it.
struct ClientThreads {
  ClientThreads(asio::io_context& io, const ComputeOptions& options)
      : clock(io),
        pool(options.threads, options.nice, options.pins_threads),
        executor(pool, options.memory_bytes, options.points),
        thread(io,
               [this, options, is_ready = false](const Work& work) mutable {
                 if (!std::exchange(is_ready, true)) {
                   give_way(options.nice);
                   if (options.pins_threads) pin_to_processor(0);
                   set_float_state();
                 }
                 auto replies = executor.execute(work);
                 return Worked{std::move(replies), executor.held_bytes()};
               }),
        lanes(io, executor, options.threads, options.nice, options.pins_threads) {}

  // Opens the gate, so that work that waits there ends.
  ~ClientThreads() { pool.gate().open(); }

  IoClock clock;
  ThreadPool pool;
  Executor executor;
  IoTaskThread<Work, Worked> thread;
  LaneThreads lanes;
};

class ThreadedClient : public ClientThreads, public Client {
 public:
  struct Options : Client::Options, ComputeOptions {};

  // The destructor waits for work that is under way.
  ThreadedClient(asio::io_context& io, const Options& options)
      : ClientThreads(io, options), Client(clock, thread, pool.gate(), options, &lanes) {}

  // Computes with this many threads from now on, at most those that it was made with.
  void use_threads(unsigned threads) {
    pool.use(threads);
    lanes.use(threads);
  }
};

}  // namespace gleaner::volunteer

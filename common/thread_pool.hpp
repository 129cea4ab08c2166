// Compute threads. One owner runs one loop at a time; the calling thread takes part, so a pool of
// one starts no thread.
#pragma once

#include <atomic>
#include <climits>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "common/float_state.hpp"
#include "common/os/priority.hpp"
#include "common/time.hpp"

namespace gleaner {

// A gate that compute threads pass between two blocks of their work. They wait while the gate is
// closed, so that work stops within a block and continues later without a loss. Any thread may call
// anything.
class PauseGate {
 public:
  void close() {
    if (is_closed()) return;
    closed_at_us_ = monotonic_now().time_since_epoch().count();
    ++turns_;
  }

  void open() {
    if (!is_closed()) return;
    closed_us_ += monotonic_now().time_since_epoch().count() - closed_at_us_.load();
    ++turns_;
    turns_.notify_all();
  }

  [[nodiscard]] bool is_closed() const { return turns_.load(std::memory_order_acquire) % 2 == 1; }

  // Waits while the gate is closed.
  void pass() {
    for (std::uint32_t seen = turns_; seen % 2 == 1; seen = turns_) turns_.wait(seen);
  }

  // Waits while the gate is closed and `is_stopped` is not set. Setting it requires wake().
  void pass(const std::atomic<bool>& is_stopped) {
    for (std::uint32_t seen = turns_; seen % 2 == 1 && !is_stopped; seen = turns_) {
      turns_.wait(seen);
    }
  }

  void wake() {
    turns_ += 2;
    turns_.notify_all();
  }

  // Total time closed, up to the last opening.
  [[nodiscard]] Micros closed_for() const { return Micros(closed_us_.load()); }

 private:
  std::atomic<std::uint32_t> turns_{0};  // odd while closed
  std::atomic<std::int64_t> closed_at_us_{0};
  std::atomic<std::int64_t> closed_us_{0};
};

// Time of work behind a gate, without the time in which the gate was closed.
class WorkTimer {
 public:
  explicit WorkTimer(const PauseGate& gate)
      : gate_(gate), start_(monotonic_now()), closed_(gate.closed_for()) {}

  [[nodiscard]] std::uint64_t elapsed_us() const {
    const Micros all = monotonic_now() - start_;
    const Micros closed = gate_.closed_for() - closed_;
    return all > closed ? static_cast<std::uint64_t>((all - closed).count()) : 0;
  }

 private:
  const PauseGate& gate_;
  Instant start_;
  Micros closed_;
};

// A borrowed loop body, called with an index; unlike std::function it allocates nothing.
class LoopBody {
 public:
  template <typename Body>
  LoopBody(const Body& body)  // NOLINT: implicit, so that a lambda can be handed over
      : body_(&body), call_([](const void* target, std::size_t index, unsigned worker) {
          (*static_cast<const Body*>(target))(index, worker);
        }) {}

  void operator()(std::size_t index, unsigned worker) const { call_(body_, index, worker); }

 private:
  const void* body_;
  void (*call_)(const void* target, std::size_t index, unsigned worker);
};

class ThreadPool {
 public:
  // threads >= 1, including the caller of `parallel_for`. The other threads have the niceness
  // `nice` (priority.hpp) and, if `is_pinned`, stay on one processor each, from the second on.
  explicit ThreadPool(unsigned threads, int nice = 0, bool is_pinned = false);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Calls body(index, worker) once for every index < count, in any order and on any worker <
  // threads(), and returns after all calls. No number may depend on `worker`. An exception of a
  // call is rethrown when all calls have ended. Not reentrant; one caller at a time. Every worker
  // passes gate() before each call.
  void parallel_for(std::size_t count, const LoopBody& body);

  // Another thread may close it to stop a loop between two calls.
  [[nodiscard]] PauseGate& gate() { return gate_; }

  // Corrects every worker's state before the worker takes part in a loop.
  [[nodiscard]] FloatWatch& float_watch() { return float_watch_; }

  [[nodiscard]] unsigned threads() const { return static_cast<unsigned>(workers_.size()) + 1; }

  // From the next loop on no more than `threads`, at least 1, take part. Any thread.
  void use(unsigned threads) { used_ = threads; }

  // For the child of a fork(), where the threads do not exist: forgets them, whatever they did. One
  // thread remains, the caller's, until start().
  void forget_threads();

  // Starts threads - 1 threads. Requires a pool after forget_threads().
  void start(unsigned threads, int nice = 0, bool is_pinned = false);

 private:
  // Ends the started threads.
  void end();
  void work(unsigned worker);
  void drain(unsigned worker);

  PauseGate gate_;
  FloatWatch float_watch_;
  std::mutex mutex_;
  std::condition_variable start_;
  std::condition_variable done_;
  const LoopBody* body_ = nullptr;
  std::size_t count_ = 0;
  std::atomic<std::size_t> next_{0};
  std::atomic<unsigned> used_{UINT_MAX};
  std::uint64_t generation_ = 0;
  std::size_t busy_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace gleaner

// Compute threads. One owner runs one loop at a time; the calling thread takes part, so a pool of
// one starts no thread.
#pragma once

#include <atomic>
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

// A gate that compute threads pass between two blocks of their work. While it is closed they wait
// there, so that a piece of work stops within one block and goes on later without losing a bit.
// Any thread may call anything.
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

  // Waits while the gate is closed, and `is_stopped` is not set; who sets it wakes the threads.
  void pass(const std::atomic<bool>& is_stopped) {
    for (std::uint32_t seen = turns_; seen % 2 == 1 && !is_stopped; seen = turns_) {
      turns_.wait(seen);
    }
  }

  void wake() {
    turns_ += 2;
    turns_.notify_all();
  }

  // How long it has been closed in all, up to the last time it was opened.
  [[nodiscard]] Micros closed_for() const { return Micros(closed_us_.load()); }

 private:
  std::atomic<std::uint32_t> turns_{0};  // odd while it is closed
  std::atomic<std::int64_t> closed_at_us_{0};
  std::atomic<std::int64_t> closed_us_{0};
};

// How long work behind a gate takes, without the time for which the gate was closed.
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

// The body of a loop, called with an index, borrowed: unlike a std::function it takes no memory of
// its own.
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
  // threads >= 1, the caller of `parallel_for` included. Those that are started give way by `nice`
  // (priority.hpp); if `is_pinned`, each stays on a processor, from the second on.
  explicit ThreadPool(unsigned threads, int nice = 0, bool is_pinned = false);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Calls body(index, worker) once for every index < count, in any order and on any worker
  // < threads(), and returns when all calls have. Nothing numeric may depend on `worker`.
  // What a call throws is thrown here when all have ended. Not reentrant; one caller at a time.
  // Every worker passes gate() before each call.
  void parallel_for(std::size_t count, const LoopBody& body);

  // Closed from another thread, it holds a loop up between two of its calls.
  [[nodiscard]] PauseGate& gate() { return gate_; }

  // Every worker is put right before it takes part in a loop.
  [[nodiscard]] FloatWatch& float_watch() { return float_watch_; }

  [[nodiscard]] unsigned threads() const { return static_cast<unsigned>(workers_.size()) + 1; }

 private:
  // Ends the threads that were started.
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
  std::uint64_t generation_ = 0;
  std::size_t busy_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace gleaner

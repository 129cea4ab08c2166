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

#include "common/pause_gate.hpp"

namespace gleaner {

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
  // (thread_priority.hpp); if `is_pinned`, each stays on a processor, from the second on.
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

  [[nodiscard]] unsigned threads() const { return static_cast<unsigned>(workers_.size()) + 1; }

 private:
  // Ends the threads that were started.
  void end();
  void work(unsigned worker);
  void drain(unsigned worker);

  PauseGate gate_;
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

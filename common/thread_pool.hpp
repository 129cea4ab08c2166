// Compute threads. One owner runs one loop at a time; the calling thread takes part, so a pool of
// one starts no thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace gleaner {

class ThreadPool {
 public:
  // threads >= 1, the caller of `parallel_for` included.
  explicit ThreadPool(unsigned threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Calls body(index, worker) once for every index < count, in any order and on any worker
  // < threads(), and returns when all calls have. Nothing numeric may depend on `worker`.
  // `body` must not throw. Not reentrant; one caller at a time.
  void parallel_for(std::size_t count, const std::function<void(std::size_t, unsigned)>& body);

  [[nodiscard]] unsigned threads() const { return static_cast<unsigned>(workers_.size()) + 1; }

 private:
  void work(unsigned worker);
  void drain(unsigned worker);

  std::mutex mutex_;
  std::condition_variable start_;
  std::condition_variable done_;
  const std::function<void(std::size_t, unsigned)>* body_ = nullptr;
  std::size_t count_ = 0;
  std::atomic<std::size_t> next_{0};
  std::uint64_t generation_ = 0;
  std::size_t busy_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace gleaner

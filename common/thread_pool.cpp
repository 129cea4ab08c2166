#include "common/thread_pool.hpp"

#include <exception>
#include <new>

#include "common/result.hpp"

namespace gleaner {
ThreadPool::ThreadPool(unsigned threads, int nice, bool is_pinned) {
  start(threads, nice, is_pinned);
}

void ThreadPool::forget_threads() {
  // Destructors would wait for threads and waiters that this process does not have.
  new (&mutex_) std::mutex();
  new (&start_) std::condition_variable();
  new (&done_) std::condition_variable();
  new (&workers_) std::vector<std::thread>();
  body_ = nullptr;
  busy_ = 0;
  generation_ = 0;
}

void ThreadPool::start(unsigned threads, int nice, bool is_pinned) {
  GLEANER_CHECK(threads >= 1 && workers_.empty());
  try {
    for (unsigned worker = 1; worker < threads; ++worker) {
      workers_.emplace_back([this, worker, nice, is_pinned] {
        give_way(nice);
        if (is_pinned) pin_to_processor(worker);
        set_float_state();
        work(worker);
      });
    }
  } catch (...) {
    end();
    throw;
  }
}

ThreadPool::~ThreadPool() {
  end();
}

void ThreadPool::end() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  start_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::parallel_for(std::size_t count, const LoopBody& body) {
  float_watch_.restore();
  if (workers_.empty() || count <= 1) {
    for (std::size_t index = 0; index < count; ++index) {
      gate_.pass();
      body(index, 0);
    }
    return;
  }
  // For example without memory. Calls that have not begun by then are left out.
  std::exception_ptr failure;
  const auto guarded = [&](std::size_t index, unsigned worker) {
    try {
      body(index, worker);
    } catch (...) {
      next_ = count_;
      const std::lock_guard lock(mutex_);
      if (!failure) failure = std::current_exception();
    }
  };
  const LoopBody loop(guarded);
  {
    const std::lock_guard lock(mutex_);
    body_ = &loop;
    count_ = count;
    next_ = 0;
    busy_ = workers_.size();
    ++generation_;
  }
  start_.notify_all();
  drain(0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return busy_ == 0; });
  body_ = nullptr;
  lock.unlock();
  if (failure) std::rethrow_exception(failure);
}

void ThreadPool::drain(unsigned worker) {
  for (std::size_t index = next_++; index < count_; index = next_++) {
    gate_.pass();
    (*body_)(index, worker);
  }
}

void ThreadPool::work(unsigned worker) {
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    start_.wait(lock, [&] { return stopping_ || generation_ != seen; });
    if (stopping_) return;
    seen = generation_;
    lock.unlock();
    float_watch_.restore();
    if (worker < used_) drain(worker);
    lock.lock();
    if (--busy_ == 0) done_.notify_one();
  }
}

}  // namespace gleaner

#include "common/thread_pool.hpp"

#include "common/check.hpp"

namespace gleaner {

ThreadPool::ThreadPool(unsigned threads) {
  GLEANER_CHECK(threads >= 1);
  for (unsigned worker = 1; worker < threads; ++worker) {
    workers_.emplace_back([this, worker] { work(worker); });
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  start_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::parallel_for(std::size_t count, const LoopBody& body) {
  if (workers_.empty() || count <= 1) {
    for (std::size_t index = 0; index < count; ++index) body(index, 0);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    body_ = &body;
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
}

void ThreadPool::drain(unsigned worker) {
  for (std::size_t index = next_++; index < count_; index = next_++) (*body_)(index, worker);
}

void ThreadPool::work(unsigned worker) {
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    start_.wait(lock, [&] { return stopping_ || generation_ != seen; });
    if (stopping_) return;
    seen = generation_;
    lock.unlock();
    drain(worker);
    lock.lock();
    if (--busy_ == 0) done_.notify_one();
  }
}

}  // namespace gleaner

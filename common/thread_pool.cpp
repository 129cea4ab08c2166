#include "common/thread_pool.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <fstream>

#include "common/result.hpp"

namespace gleaner {
namespace {

// As linux/ioprio.h has them; the C library has no call for it.
constexpr int kIoOfOneThread = 1;
constexpr int kIoIdleClass = 3 << 13;

}  // namespace

void give_way(int nice) {
  // Anybody may lower a priority. Were it refused nevertheless, threads would be as any others.
  if (niceness() < std::min(nice, kNiceMax)) {
    (void)setpriority(PRIO_PROCESS, 0, std::min(nice, kNiceMax));
  }
  if (nice < kNiceIdle) return;
  const sched_param none{};
  (void)sched_setscheduler(0, SCHED_IDLE, &none);
  (void)syscall(SYS_ioprio_set, kIoOfOneThread, 0, kIoIdleClass);
}

int niceness() {
  return getpriority(PRIO_PROCESS, 0);
}

void pin_to_processor(unsigned index) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  const auto count = static_cast<unsigned>(CPU_COUNT(&allowed));
  if (count == 0) return;
  unsigned left = index % count;
  for (unsigned processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (!CPU_ISSET(processor, &allowed) || left-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

void give_way_in_memory() {
  // Raising it is always allowed; 1000 is the most.
  std::ofstream("/proc/self/oom_score_adj") << 800 << '\n';
}

ThreadPool::ThreadPool(unsigned threads, int nice, bool is_pinned) {
  GLEANER_CHECK(threads >= 1);
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
  // For want of memory, say. What has not begun by then is left out.
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
    drain(worker);
    lock.lock();
    if (--busy_ == 0) done_.notify_one();
  }
}

}  // namespace gleaner

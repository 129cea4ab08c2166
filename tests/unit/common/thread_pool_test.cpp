#include "common/thread_pool.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <new>
#include <thread>
#include <vector>

namespace gleaner {

TEST_CASE("thread pool: every index is visited once, at any thread count", "[thread_pool]") {
  for (const unsigned threads : {1u, 2u, 5u}) {
    ThreadPool pool(threads);
    REQUIRE(pool.threads() == threads);
    for (const std::size_t count : {0u, 1u, 2u, 7u, 1000u}) {
      std::vector<std::atomic<int>> visits(count);
      std::atomic<bool> worker_in_range = true;
      pool.parallel_for(count, [&](std::size_t index, unsigned worker) {
        ++visits[index];
        if (worker >= threads) worker_in_range = false;
      });
      for (const auto& visit : visits) REQUIRE(visit == 1);
      REQUIRE(worker_in_range);
    }
  }
}

TEST_CASE("thread pool: what a worker throws reaches the caller, and the pool goes on",
          "[thread_pool]") {
  for (const unsigned threads : {1u, 2u, 5u}) {
    ThreadPool pool(threads);
    for (const std::size_t failing : {0u, 3u, 99u}) {
      const auto body = [&](std::size_t index, unsigned) {
        if (index >= failing) throw std::bad_alloc();
      };
      REQUIRE_THROWS_AS(pool.parallel_for(100, body), std::bad_alloc);
    }
    std::atomic<int> visits = 0;
    pool.parallel_for(100, [&](std::size_t, unsigned) { ++visits; });
    REQUIRE(visits == 100);
  }
}

#ifndef __SANITIZE_THREAD__  // which starts no thread after a fork
TEST_CASE("thread pool: a forked child starts threads of its own", "[thread_pool]") {
  ThreadPool pool(3);
  const auto visits_all = [&pool] {
    std::atomic<int> visits = 0;
    pool.parallel_for(100, [&](std::size_t, unsigned) { ++visits; });
    return visits == 100;
  };
  REQUIRE(visits_all());
  const pid_t child = fork();
  if (child == 0) {
    pool.forget_threads();
    const bool alone = pool.threads() == 1 && visits_all();
    pool.start(3);
    const bool together = pool.threads() == 3 && visits_all() && visits_all();
    pool.~ThreadPool();  // its threads end
    _exit(alone && together ? 0 : 1);
  }
  int status = 1;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  REQUIRE(visits_all());
}
#endif

TEST_CASE("thread pool: a closed gate holds a loop up between two calls, and nothing is lost",
          "[thread_pool]") {
  for (const unsigned threads : {1u, 3u}) {
    ThreadPool pool(threads);
    std::atomic<std::size_t> begun = 0;
    std::vector<std::atomic<int>> visits(100);
    std::atomic<bool> was_closed = false;
    // The tenth call closes the gate, and later ones end behind it: however slow the tenth is, each
    // other thread begins one call at most before it meets the gate.
    std::thread owner([&] {
      pool.parallel_for(visits.size(), [&](std::size_t index, unsigned) {
        ++visits[index];
        const std::size_t call = ++begun;
        if (call == 10) {
          pool.gate().close();
          was_closed = true;
        }
        while (call > 10 && !was_closed) std::this_thread::yield();
      });
    });
    while (!pool.gate().is_closed()) std::this_thread::yield();
    // Threads that had passed the gate before it was closed may still begin.
    for (int look = 0; look < 1000; ++look) std::this_thread::yield();
    REQUIRE(begun < 10 + threads);
    pool.gate().open();
    owner.join();
    for (const auto& visit : visits) REQUIRE(visit == 1);
    REQUIRE(pool.gate().closed_for() > Micros(0));
  }
}

TEST_CASE("thread pool: time behind a closed gate is not counted as work", "[thread_pool]") {
  PauseGate gate;
  const Instant begin = monotonic_now();
  const WorkTimer timer(gate);
  gate.close();
  while (monotonic_now() - begin < Millis(20)) std::this_thread::yield();
  gate.open();
  gate.pass();
  REQUIRE(gate.closed_for() >= Millis(19));
  const Micros worked(timer.elapsed_us());
  REQUIRE(worked + gate.closed_for() <= monotonic_now() - begin);
}

TEST_CASE("thread pool: the threads it starts give way, the caller does not", "[thread_pool]") {
  const int before = niceness();
  const int nice = std::min(before + 3, kNiceMax);
  ThreadPool pool(3, nice);
  // Each index waits for the others, so that each is on a thread of its own.
  std::atomic<int> arrived = 0;
  std::vector<int> seen(3);
  pool.parallel_for(3, [&](std::size_t, unsigned worker) {
    seen[worker] = niceness();
    ++arrived;
    while (arrived < 3) std::this_thread::yield();
  });
  REQUIRE(seen == std::vector{before, nice, nice});
  REQUIRE(niceness() == before);
}

TEST_CASE("thread priority: is lowered, never raised, and handed down", "[thread_pool]") {
  const int nice = std::min(niceness() + 3, kNiceMax);
  int lowered = -1;
  int lowered_less = -1;
  int inherited = -1;
  std::thread([&] {
    give_way(nice);
    lowered = niceness();
    give_way(0);
    lowered_less = niceness();
    std::thread([&] { inherited = niceness(); }).join();
  }).join();
  REQUIRE(lowered == nice);
  REQUIRE(lowered_less == nice);
  REQUIRE(inherited == nice);
}

}  // namespace gleaner

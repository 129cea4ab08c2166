#include "common/thread_pool.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <new>
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

}  // namespace gleaner

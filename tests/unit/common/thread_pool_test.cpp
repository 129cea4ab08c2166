#include "common/thread_pool.hpp"

#include <atomic>
#include <catch2/catch.hpp>
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

}  // namespace gleaner

#include <catch2/catch.hpp>
#include <set>

#include "common/rates.hpp"

namespace gleaner {

TEST_CASE("backoff: each delay lies in the upper half of a range that doubles up to a limit",
          "[backoff]") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Backoff backoff(Millis(500), Millis(30'000), seed);
    for (std::int64_t ceiling = 500; ceiling < 60'000; ceiling *= 2) {
      const std::int64_t limit = std::min<std::int64_t>(ceiling, 30'000);
      const std::int64_t delay = backoff.next().count();
      REQUIRE(delay >= limit / 2);
      REQUIRE(delay <= limit);
    }
  }
}

TEST_CASE("backoff: it starts again after a success", "[backoff]") {
  Backoff backoff(Millis(100), Millis(100'000), 1);
  for (int i = 0; i < 10; ++i) (void)backoff.next();
  REQUIRE(backoff.attempts() == 10);
  backoff.reset();
  REQUIRE(backoff.next() <= Millis(100));
}

TEST_CASE("backoff: it never overflows, however long the master is gone", "[backoff]") {
  Backoff backoff(Millis(500), Millis(30'000), 1);
  for (int i = 0; i < 10'000; ++i) {
    const Millis delay = backoff.next();
    REQUIRE((delay.count() > 0 && delay <= Millis(30'000)));
  }
}

TEST_CASE("backoff: volunteers with different seeds do not return in step", "[backoff]") {
  std::set<std::int64_t> delays;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    delays.insert(Backoff(Millis(1'000), Millis(30'000), seed).next().count());
  }
  REQUIRE(delays.size() > 50);
}

}  // namespace gleaner

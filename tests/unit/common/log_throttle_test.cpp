#include <catch2/catch.hpp>

#include "common/console/log.hpp"

namespace gleaner {
namespace {

constexpr Millis kPeriod{1000};

Instant at(std::int64_t ms) {
  return Instant(Millis(ms));
}

}  // namespace

TEST_CASE("log throttle: one sentence is shown once a period, and others beside it",
          "[log_throttle]") {
  LogThrottle throttle(kPeriod, 10);
  REQUIRE(throttle.pass("a: is odd", at(0)) == "a: is odd");
  REQUIRE_FALSE(throttle.pass("a: is odd", at(999)).has_value());
  REQUIRE_FALSE(throttle.pass("a: is odd", at(999)).has_value());
  REQUIRE(throttle.pass("b: is odd", at(999)) == "b: is odd (2 more such lines were left out)");
  REQUIRE(throttle.pass("a: is odd", at(1000)) == "a: is odd");
}

TEST_CASE("log throttle: many different sentences are bounded too, and counted", "[log_throttle]") {
  LogThrottle throttle(kPeriod, 3);
  int shown = 0;
  for (int i = 0; i < 1000; ++i) {
    if (throttle.pass(std::to_string(i), at(i % 1000))) ++shown;
  }
  REQUIRE(shown == 3);
  REQUIRE(throttle.pass("later", at(1000)) == "later (997 more such lines were left out)");
}

}  // namespace gleaner

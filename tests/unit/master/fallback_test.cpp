#include <catch2/catch.hpp>

#include "master/in_process_volunteers.hpp"

namespace gleaner {
namespace {

Instant at(std::int64_t ms) {
  return Instant(Millis(ms));
}

}  // namespace

TEST_CASE("fallback: it takes over when nobody has been here for its patience", "[fallback]") {
  Fallback fallback(Millis(1000));
  REQUIRE_FALSE(fallback.observe(0, at(0)));
  REQUIRE_FALSE(fallback.observe(0, at(999)));
  REQUIRE(fallback.observe(0, at(1000)));
  REQUIRE(fallback.observe(0, at(5000)));
}

TEST_CASE("fallback: one who comes, however shortly, starts the patience again", "[fallback]") {
  Fallback fallback(Millis(1000));
  fallback.observe(0, at(0));
  REQUIRE_FALSE(fallback.observe(1, at(900)));
  REQUIRE_FALSE(fallback.observe(0, at(1000)));
  REQUIRE_FALSE(fallback.observe(0, at(1999)));
  REQUIRE(fallback.observe(0, at(2000)));
}

TEST_CASE("fallback: it steps back for those who stay, not for those who pass by", "[fallback]") {
  Fallback fallback(Millis(1000));
  fallback.observe(0, at(0));
  REQUIRE(fallback.observe(0, at(1000)));
  REQUIRE(fallback.observe(3, at(2000)));
  REQUIRE(fallback.observe(0, at(2500)));
  REQUIRE(fallback.observe(1, at(3000)));
  REQUIRE(fallback.observe(1, at(3999)));
  REQUIRE_FALSE(fallback.observe(2, at(4000)));
  REQUIRE_FALSE(fallback.observe(0, at(4100)));
}

}  // namespace gleaner

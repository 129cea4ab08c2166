#include <catch2/catch.hpp>

#include "common/http/admission.hpp"

namespace gleaner {
namespace {

constexpr Instant kStart{Micros{1'000'000}};

HttpPlaceLimits small_limits() {
  HttpPlaceLimits limits;
  limits.ordinary_max = 4;
  limits.ordinary_per_address_max = 2;
  limits.spare_max = 2;
  limits.first_head_time_max = Millis{10};
  limits.next_head_time_max = Millis{30};
  limits.body_time_max = Millis{20};
  return limits;
}

}  // namespace

TEST_CASE(
    "http places: an address beyond its own gets spare places, and others still ordinary ones",
    "[http]") {
  HttpPlaces places(small_limits());
  for (const int connection : {1, 2, 3}) {
    REQUIRE_FALSE(places.arrive(connection, "a", kStart).has_value());
    REQUIRE(places.is_spare(connection) == (connection == 3));
  }
  for (const int connection : {4, 5}) REQUIRE_FALSE(places.arrive(connection, "b", kStart));
  REQUIRE_FALSE(places.is_spare(5));
  // All ordinary places are taken.
  REQUIRE_FALSE(places.arrive(6, "c", kStart));
  REQUIRE(places.is_spare(6));
  places.leave(1);
  REQUIRE_FALSE(places.arrive(7, "a", kStart));
  REQUIRE_FALSE(places.is_spare(7));
  REQUIRE(places.is_spare(3));  // as long as it stays
}

TEST_CASE("http places: the oldest spare place goes for a new one, and no other", "[http]") {
  HttpPlaces places(small_limits());
  for (const int connection : {1, 2, 3, 4}) REQUIRE_FALSE(places.arrive(connection, "a", kStart));
  REQUIRE(places.arrive(5, "a", kStart) == 3);
  REQUIRE(places.arrive(6, "b", kStart) == std::nullopt);
  REQUIRE(places.arrive(7, "a", kStart) == 4);
  // Who was turned out leaves when its connection is closed.
  places.leave(3);
  places.leave(3);
  places.leave(5);
  REQUIRE(places.arrive(8, "a", kStart) == std::nullopt);
  REQUIRE(places.arrive(9, "a", kStart) == 7);
}

TEST_CASE("http places: a descriptor that is used again begins with a new place", "[http]") {
  HttpPlaces places(small_limits());
  for (const int connection : {1, 2, 3}) REQUIRE_FALSE(places.arrive(connection, "a", kStart));
  places.leave(3);
  REQUIRE_FALSE(places.is_spare(3));
  REQUIRE_FALSE(places.arrive(3, "b", kStart));
  REQUIRE_FALSE(places.is_spare(3));
}

TEST_CASE("http places: a request has one deadline for its head and one for its body", "[http]") {
  HttpPlaces places(small_limits());
  REQUIRE_FALSE(places.next_due().has_value());
  REQUIRE_FALSE(places.arrive(1, "a", kStart));
  REQUIRE(places.next_due() == kStart + Millis{10});
  REQUIRE(places.take_overdue(kStart + Millis{9}).empty());
  places.await_body(1, kStart + Millis{9});
  REQUIRE(places.take_overdue(kStart + Millis{28}).empty());
  REQUIRE(places.take_overdue(kStart + Millis{29}) == std::vector<int>{1});
  REQUIRE(places.take_overdue(kStart + Millis{29}).empty());  // told once
}

TEST_CASE("http places: an answer may take its time, and the next request has another one",
          "[http]") {
  HttpPlaces places(small_limits());
  REQUIRE_FALSE(places.arrive(1, "a", kStart));
  REQUIRE_FALSE(places.arrive(2, "a", kStart + Millis{1}));
  places.await_answer(1);
  REQUIRE(places.take_overdue(kStart + Millis{1000}) == std::vector<int>{2});
  places.await_next_head(1, kStart + Millis{1000});
  REQUIRE(places.next_due() == kStart + Millis{1030});
  places.leave(1);
  REQUIRE_FALSE(places.next_due().has_value());
  places.await_body(1, kStart);
  REQUIRE_FALSE(places.next_due().has_value());
}

TEST_CASE("http places: all IPv6 addresses of a subscriber are one", "[http]") {
  HttpPlaces places(small_limits());
  places.arrive(1, "2001:db8:1:2::1", kStart);
  places.arrive(2, "2001:db8:1:2::2", kStart);
  places.arrive(3, "2001:db8:1:2:ffff::3", kStart);
  places.arrive(4, "2001:db8:1:3::1", kStart);
  REQUIRE(places.is_spare(3));
  REQUIRE_FALSE(places.is_spare(4));
}

}  // namespace gleaner

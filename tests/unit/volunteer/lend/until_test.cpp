// When the lent time ends, as people and batch systems write it.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <ctime>

#include "volunteer/lend/schedule.hpp"

namespace gleaner::volunteer {
namespace {

constexpr std::int64_t kNow = 1'795'000'000;

}  // namespace

TEST_CASE("until: durations are read as people write them", "[control]") {
  REQUIRE(parse_duration("2h") == Millis(7'200'000));
  REQUIRE(parse_duration("1h30m") == Millis(5'400'000));
  REQUIRE(parse_duration("1h30") == Millis(5'400'000));
  REQUIRE(parse_duration("45") == Millis(45 * 60'000));
  REQUIRE(parse_duration("90s") == Millis(90'000));
  REQUIRE(parse_duration("30d") == Millis(std::int64_t{30} * 86'400'000));
  REQUIRE(parse_duration("2 hours") == Millis(7'200'000));
  REQUIRE(parse_duration(" 1 h 30 min ") == Millis(5'400'000));
  for (const char* text :
       {"", "0", "h", "2x", "-1h", "31d", "99999999999999999999h", "1 2h", "0,5h", "2 H"}) {
    INFO(text);
    REQUIRE_FALSE(parse_duration(text).has_value());
  }
}

TEST_CASE("until: an end is a duration, a local time or seconds since 1970", "[control]") {
  REQUIRE(parse_until("90s", kNow).value() == kNow + 90);
  REQUIRE(parse_until("@1795676400", kNow).value() == 1'795'676'400);
  const std::int64_t minute = parse_until("2026-11-26T07:05", kNow).value();
  REQUIRE(parse_until("2026-11-26T07:05:09", kNow).value() == minute + 9);
  const std::time_t seconds = minute;
  std::tm local{};
  localtime_r(&seconds, &local);
  REQUIRE(local.tm_mday == 26);
  REQUIRE(local.tm_hour == 7);
  REQUIRE(local.tm_min == 5);
}

TEST_CASE("until: what is no time is refused with what would do", "[control]") {
  for (const char* text : {"", "@", "@-1", "@12x", "@999999999999999", "07:00", "2026-13-01T00:00",
                           "2026-11-26T07:00Z", "2026-11-26", "N/A", "2027-02-30T10:00",
                           "2027-02-29T10:00", "2026-11-31T10:00", "2026-11-26T10:00:60"}) {
    INFO(text);
    const auto until = parse_until(text, kNow);
    REQUIRE_FALSE(until.ok());
    REQUIRE_THAT(until.error().message, Catch::Contains("4h"));
  }
}

TEST_CASE("until: an hour that the clocks skip is refused, and one that they repeat is not",
          "[control]") {
  REQUIRE(::setenv("TZ", "Europe/Berlin", 1) == 0);
  ::tzset();
  REQUIRE_FALSE(parse_until("2027-03-28T02:30", kNow).ok());
  REQUIRE(parse_until("2027-03-28T03:30", kNow).ok());
  REQUIRE(parse_until("2027-10-31T02:30", kNow).ok());
  ::unsetenv("TZ");
  ::tzset();
}

}  // namespace gleaner::volunteer

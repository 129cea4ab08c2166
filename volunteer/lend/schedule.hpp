// Hours of the week in which the machine may be lent. Plain value.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>

#include "common/result.hpp"
#include "common/time.hpp"

namespace gleaner::volunteer {

inline constexpr std::uint32_t kMinutesPerDay = 24 * 60;
inline constexpr std::uint32_t kMinutesPerWeek = 7 * kMinutesPerDay;

class LendingHours {
 public:
  // Parses "mon-fri 20:00-07:00, sat-sun 0-24": days, every day unless given, then hours. Hours
  // that end before they begin go on into the next day. Empty text allows no hour.
  static Result<LendingHours> parse(const std::string& text);

  // Minutes count from Monday at midnight and are taken modulo a week.
  [[nodiscard]] bool allows(std::uint32_t minute_of_week) const {
    return minutes_[minute_of_week % kMinutesPerWeek];
  }

  // Minutes until allows() changes; a week when it never does.
  [[nodiscard]] std::uint32_t until_change(std::uint32_t minute_of_week) const;

 private:
  std::bitset<kMinutesPerWeek> minutes_;
};

// The end of the time for which a machine is lent, as people and batch systems write it. Pure: any
// thread.

// "90s", "30 min", "2 hours", "1d", "1h 30m"; a number alone is minutes. From a second to 30 days.
std::optional<Millis> parse_duration(const std::string& text);

// Parses "4h" (after `now`), "2026-11-26T07:00" in local time, with or without seconds, or
// "@1795676400". Returns seconds since 1970. The error lists these forms.
Result<std::int64_t> parse_until(const std::string& text, std::int64_t now);

}  // namespace gleaner::volunteer

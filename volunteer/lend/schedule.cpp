#include "volunteer/lend/schedule.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <sstream>
#include <string_view>
#include <utility>

#include "common/settings/settings_value.hpp"

namespace gleaner::volunteer {
namespace {

constexpr std::array<std::string_view, 7> kDays{"mon", "tue", "wed", "thu", "fri", "sat", "sun"};

std::optional<std::uint32_t> day_of(std::string_view text) {
  for (std::uint32_t day = 0; day < kDays.size(); ++day) {
    if (kDays[day] == text) return day;
  }
  return std::nullopt;
}

struct Range {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

// "mon-fri" or "mon". "sat-mon" crosses the end of the week.
std::optional<Range> days_of(const std::string& text) {
  const std::size_t dash = text.find('-');
  const auto first = day_of(std::string_view(text).substr(0, dash));
  const auto last =
      dash == std::string::npos ? first : day_of(std::string_view(text).substr(dash + 1));
  if (!first || !last) return std::nullopt;
  return Range{*first, *last};
}

// "20:00" or "20", in minutes of a day.
std::optional<std::uint32_t> minute_of(const std::string& text) {
  unsigned hour = 0, minute = 0;
  int used = 0;
  const std::string whole = text.find(':') == std::string::npos ? text + ":00" : text;
  const int fields = std::sscanf(whole.c_str(), "%2u:%2u%n", &hour, &minute, &used);
  if (fields != 2 || whole.begin() + used != whole.end() || minute > 59) return std::nullopt;
  return hour * 60 + minute;
}

std::optional<Range> hours_of(const std::string& text) {
  const std::size_t dash = text.find('-');
  if (dash == std::string::npos) return std::nullopt;
  const auto first = minute_of(text.substr(0, dash));
  const auto last = minute_of(text.substr(dash + 1));
  if (!first || !last || *first >= kMinutesPerDay || *last > kMinutesPerDay || *first == *last) {
    return std::nullopt;
  }
  return Range{*first, *last};
}

constexpr std::int64_t kLatest = 253'402'300'799;  // the last second of the year 9999

std::optional<std::int64_t> seconds_since_1970(const std::string& text) {
  std::int64_t seconds = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + 1, end, seconds);
  if (parsed.ec != std::errc{} || parsed.ptr != end || seconds < 0 || seconds > kLatest) {
    return std::nullopt;
  }
  return seconds;
}

std::optional<std::int64_t> local_time(const std::string& text) {
  std::tm time{};
  int end = 0;
  const int fields =
      std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d%n:%2d%n", &time.tm_year, &time.tm_mon,
                  &time.tm_mday, &time.tm_hour, &time.tm_min, &end, &time.tm_sec, &end);
  if (fields < 5 || static_cast<std::size_t>(end) != text.size()) return std::nullopt;
  time.tm_year -= 1900;
  time.tm_mon -= 1;
  time.tm_isdst = -1;
  const std::tm asked = time;
  const std::time_t seconds = std::mktime(&time);
  // mktime moves a time that does not exist, such as 30 February, to an existing one.
  const bool exists = time.tm_year == asked.tm_year && time.tm_mon == asked.tm_mon &&
                      time.tm_mday == asked.tm_mday && time.tm_hour == asked.tm_hour &&
                      time.tm_min == asked.tm_min && time.tm_sec == asked.tm_sec;
  if (seconds < 0 || !exists) return std::nullopt;
  return seconds;
}

}  // namespace

Result<LendingHours> LendingHours::parse(const std::string& text) {
  LendingHours schedule;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    std::istringstream words(part);
    std::string day_word, hour_word, rest;
    words >> day_word;
    if (!(words >> hour_word)) hour_word = std::exchange(day_word, "mon-sun");
    words >> rest;
    const auto days = days_of(day_word);
    const auto hours = hours_of(hour_word);
    if (!days || !hours || !rest.empty()) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("'{}' is no hours of a week: give hours, as in 19-7 or \"mon-fri "
                               "20:00-07:00, sat-sun 00:00-24:00\"",
                               part)};
    }
    const std::uint32_t length = hours->last > hours->first
                                     ? hours->last - hours->first
                                     : hours->last + kMinutesPerDay - hours->first;
    for (std::uint32_t day = days->first;; day = (day + 1) % 7) {
      for (std::uint32_t minute = 0; minute < length; ++minute) {
        schedule.minutes_.set((day * kMinutesPerDay + hours->first + minute) % kMinutesPerWeek);
      }
      if (day == days->last) break;
    }
  }
  return schedule;
}

std::uint32_t LendingHours::until_change(std::uint32_t minute_of_week) const {
  const bool is_allowed = allows(minute_of_week);
  std::uint32_t minutes = 1;
  while (minutes < kMinutesPerWeek && allows(minute_of_week + minutes) == is_allowed) ++minutes;
  return minutes;
}

std::optional<Millis> parse_duration(const std::string& text) {
  constexpr std::uint64_t kSecondsMax = 30ULL * 86'400;
  const std::size_t last = text.find_last_not_of(' ');
  const bool lacks_unit = last != std::string::npos && text[last] >= '0' && text[last] <= '9';
  const auto seconds = parse_duration_seconds(lacks_unit ? text + "m" : text);
  if (!seconds || *seconds > kSecondsMax) return std::nullopt;
  return Millis(*seconds * 1000);
}

Result<std::int64_t> parse_until(const std::string& text, std::int64_t now) {
  if (const auto duration = parse_duration(text)) return now + duration->count() / 1000;
  const auto seconds = text.starts_with('@') ? seconds_since_1970(text) : local_time(text);
  if (seconds) return *seconds;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("'{}' is no time that there is here: give a duration such as 4h or 90s, "
                           "a local time such "
                           "as 2026-11-26T07:00, or @ and the seconds since 1970",
                           text)};
}

}  // namespace gleaner::volunteer

#include "volunteer/control/until.hpp"

#include <fmt/format.h>

#include <charconv>
#include <ctime>

#include "common/settings/duration.hpp"

namespace gleaner::volunteer {
namespace {

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
  for (const char* const form : {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M"}) {
    std::tm time{};
    time.tm_isdst = -1;
    const char* const end = strptime(text.c_str(), form, &time);
    if (end == nullptr || *end != '\0') continue;
    const std::tm asked = time;
    const std::time_t seconds = std::mktime(&time);
    // It moves a time that does not exist, such as 30 February, to one that does.
    const bool exists = time.tm_year == asked.tm_year && time.tm_mon == asked.tm_mon &&
                        time.tm_mday == asked.tm_mday && time.tm_hour == asked.tm_hour &&
                        time.tm_min == asked.tm_min && time.tm_sec == asked.tm_sec;
    if (seconds >= 0 && exists) return seconds;
  }
  return std::nullopt;
}

}  // namespace

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

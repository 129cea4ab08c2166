#include "common/settings/duration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace gleaner {
namespace {

constexpr std::uint64_t kDay = 24 * 3600;
constexpr std::uint64_t kMost = 36'525 * kDay;

struct TimeUnit {
  std::uint64_t seconds;
  std::array<std::string_view, 5> names;
};

constexpr std::array<TimeUnit, 5> kTimeUnits = {{{1, {"s", "sec", "secs", "second", "seconds"}},
                                                 {60, {"m", "min", "mins", "minute", "minutes"}},
                                                 {3600, {"h", "hr", "hrs", "hour", "hours"}},
                                                 {kDay, {"d", "day", "days"}},
                                                 {7 * kDay, {"w", "wk", "week", "weeks"}}}};

// Seconds in one "s", "min", "hours", "d" or "weeks"; 0 for what is no unit of time.
std::uint64_t seconds_per(std::string_view unit) {
  for (const TimeUnit& one : kTimeUnits) {
    if (!unit.empty() && std::ranges::find(one.names, unit) != one.names.end()) return one.seconds;
  }
  return 0;
}

}  // namespace

Result<std::uint64_t> parse_duration_seconds(std::string_view text) {
  const Error wrong{
      ErrorCode::kInvalidArgument,
      fmt::format("'{}' is no span of time: give one such as 30m, 12h, 7d or 2w", text)};
  std::uint64_t seconds = 0;
  const auto take = [&text](const char* characters) {
    const std::size_t end = std::min(text.find_first_not_of(characters), text.size());
    const std::string_view taken = text.substr(0, end);
    text.remove_prefix(end);
    return taken;
  };
  for (take(" "); !text.empty(); take(" ")) {
    std::uint64_t number = 0;
    const std::string_view digits = take("0123456789");
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    take(" ");
    const std::uint64_t unit = seconds_per(take("abcdefghijklmnopqrstuvwxyz"));
    if (parsed.ec != std::errc{} || unit == 0 || number > (kMost - seconds) / unit) return wrong;
    seconds += number * unit;
  }
  if (seconds == 0) return wrong;
  return seconds;
}

}  // namespace gleaner

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

}  // namespace

std::uint64_t seconds_per(std::string_view unit) {
  for (const TimeUnit& one : kTimeUnits) {
    if (!unit.empty() && std::ranges::find(one.names, unit) != one.names.end()) return one.seconds;
  }
  return 0;
}

Result<std::uint64_t> parse_duration_seconds(std::string_view text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  std::string_view name(parsed.ptr, static_cast<std::size_t>(end - parsed.ptr));
  name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
  const std::uint64_t unit = seconds_per(name);
  if (parsed.ec != std::errc{} || unit == 0 || number == 0 || number > kMost / unit) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("'{}' is no span of time: give one such as 30m, 12h, 7d or 2w", text)};
  }
  return number * unit;
}

}  // namespace gleaner

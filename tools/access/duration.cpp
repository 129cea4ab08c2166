#include "tools/access/duration.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string>

namespace gleaner {
namespace {

constexpr std::uint64_t kDay = 24 * 3600;
constexpr std::uint64_t kMost = 36'525 * kDay;

std::uint64_t seconds_of(char unit) {
  switch (unit) {
    case 's':
      return 1;
    case 'm':
      return 60;
    case 'h':
      return 3600;
    case 'd':
      return kDay;
    case 'w':
      return 7 * kDay;
    default:
      return 0;
  }
}

}  // namespace

Result<std::uint64_t> parse_duration_seconds(std::string_view text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  const std::uint64_t unit = parsed.ptr + 1 == end ? seconds_of(*parsed.ptr) : 0;
  if (parsed.ec != std::errc{} || unit == 0 || number == 0 || number > kMost / unit) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("'{}' is no span of time: give one such as 30m, 12h, 7d or 2w", text)};
  }
  return number * unit;
}

}  // namespace gleaner

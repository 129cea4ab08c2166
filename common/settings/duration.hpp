// Spans of time as people type them.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/result.hpp"

namespace gleaner {

// "90s", "30 min", "12 hours", "1h 30m", "7d", "2w" in seconds; more than none, at most a hundred
// years.
Result<std::uint64_t> parse_duration_seconds(std::string_view text);

}  // namespace gleaner

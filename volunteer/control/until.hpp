// When the time that a machine is lent for ends, as people and batch systems write it. Pure: any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/result.hpp"
#include "common/time.hpp"

namespace gleaner::volunteer {

// "90s", "30 min", "2 hours", "1d", "1h 30m"; a number alone is minutes. From a second to 30 days.
std::optional<Millis> parse_duration(const std::string& text);

// Seconds since 1970 of "4h" after `now`, of "2026-11-26T07:00" in local time, with or without
// seconds, and of "@1795676400". The error says what may stand there.
Result<std::int64_t> parse_until(const std::string& text, std::int64_t now);

}  // namespace gleaner::volunteer

// Time for the cores: an instant of a monotonic clock, passed with every event.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace gleaner {

using Micros = std::chrono::duration<std::int64_t, std::micro>;
using Millis = std::chrono::duration<std::int64_t, std::milli>;

struct MonotonicClockTag {
  using rep = std::int64_t;
  using period = std::micro;
  using duration = Micros;
};

constexpr double seconds_in(Micros time) {
  return static_cast<double>(time.count()) / 1e6;
}

// Microseconds since an arbitrary start. Wall time exists only in logs and records.
using Instant = std::chrono::time_point<MonotonicClockTag, Micros>;

// The only function that reads the monotonic clock; for shells only. The clock continues while the
// machine is suspended.
Instant monotonic_now();

// Time since 1970, for logs and records. Only one decision uses it: which of two processes with the
// same key started later.
std::int64_t wall_seconds();
std::int64_t wall_milliseconds();

// Local time, "2026-11-27 19:05:00"; "at an unknown time" if there is no such year.
std::string local_time_words(std::int64_t wall_seconds);
// "42 s", "39 min", "13 h 25 min", "2 d 3 h", as in common/http/page/format.js.
std::string duration_words(std::uint64_t seconds);

}  // namespace gleaner

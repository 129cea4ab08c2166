// Time as the cores see it: an instant on a monotonic clock, handed in with every event.
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

// The one place that reads the machine's monotonic clock; shells only. It goes on while the machine
// is suspended.
Instant monotonic_now();

// Time since 1970, for logs and records. One decision uses it: which of two processes with one key
// started later.
std::int64_t wall_seconds();
std::int64_t wall_milliseconds();

// "2026-11-27 19:05:00" where the machine is; "at an unknown time" if there is no such year.
std::string local_time_words(std::int64_t wall_seconds);
// "42 s", "39 min", "13 h 25 min", "2 d 3 h": as pages write it (common/http/page/format.js).
std::string duration_words(std::uint64_t seconds);

}  // namespace gleaner

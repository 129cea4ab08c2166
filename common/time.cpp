#include "common/time.hpp"

#include <ctime>

namespace gleaner {

Instant monotonic_now() {
  // Unlike CLOCK_MONOTONIC it counts while the machine sleeps: what peers have seen pass has
  // passed.
  std::timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return Instant(std::chrono::duration_cast<Micros>(std::chrono::seconds(now.tv_sec) +
                                                    std::chrono::nanoseconds(now.tv_nsec)));
}

std::int64_t wall_seconds() {
  return wall_milliseconds() / 1000;
}

std::int64_t wall_milliseconds() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace gleaner

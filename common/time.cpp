#include "common/time.hpp"

namespace gleaner {

Instant monotonic_now() {
  const auto since_start = std::chrono::steady_clock::now().time_since_epoch();
  return Instant(std::chrono::duration_cast<Micros>(since_start));
}

std::int64_t wall_seconds() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(since_1970).count();
}

}  // namespace gleaner

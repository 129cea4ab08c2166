#include "common/time.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "common/os/process.hpp"

namespace gleaner {

Instant monotonic_now() {
  return Instant(Micros(os::monotonic_us()));
}

std::int64_t wall_seconds() {
  return wall_milliseconds() / 1000;
}

std::int64_t wall_milliseconds() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string local_time_words(std::int64_t wall_seconds) {
  const auto seconds = static_cast<std::time_t>(wall_seconds);
  std::tm local{};
  if (!os::local_time(seconds, local)) return "at an unknown time";
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", local);
}

std::string duration_words(std::uint64_t seconds) {
  if (seconds < 100) return fmt::format("{} s", seconds);
  const std::uint64_t minutes = seconds / 60 + (seconds % 60 >= 30 ? 1 : 0);
  if (minutes < 100) return fmt::format("{} min", minutes);
  const std::uint64_t hours = minutes / 60;
  if (hours < 48) return fmt::format("{} h {:02} min", hours, minutes % 60);
  return fmt::format("{} d {} h", hours / 24, hours % 24);
}

}  // namespace gleaner

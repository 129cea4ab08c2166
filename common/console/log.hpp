// Messages of programs besides their results. Each user of a sink gets it as an argument; there is
// no global sink. Cores do not log: they return messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "common/time.hpp"

namespace gleaner {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError };

// "debug", "info", "warning", "error".
const char* log_level_name(LogLevel level);

class LogSink {
 public:
  virtual ~LogSink() = default;
  // One sentence, without a newline. Called from the I/O thread only, unless the sink allows more.
  virtual void log(LogLevel level, std::string_view message) = 0;
};

// Prevents strangers from filling the log. Within a period each sentence is shown once, and at most
// `lines_max` lines in total; the next shown line says how many were left out. Pure; not
// thread-safe.
class LogThrottle {
 public:
  LogThrottle(Millis period, std::size_t lines_max) : period_(period), lines_max_(lines_max) {}

  // The line to show for `line` now, or nullopt to leave it out.
  std::optional<std::string> pass(const std::string& line, Instant now);

 private:
  Millis period_;
  std::size_t lines_max_;
  std::optional<Instant> period_began_;
  std::set<std::string> shown_;  // in this period; at most lines_max_
  std::uint64_t left_out_ = 0;   // since the last shown line
};

}  // namespace gleaner

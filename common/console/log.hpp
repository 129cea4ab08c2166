// Where programs say what happens besides their results. A sink is handed to whoever logs; there is
// no global one. Cores do not log: they return what is to be logged.
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
  // One sentence, without a newline. Called from the I/O thread only, unless the sink says more.
  virtual void log(LogLevel level, std::string_view message) = 0;
};

// Keeps strangers from filling the log. Whatever they do: within a period each sentence about each
// of them is shown once, and not more than a limit of lines in all; the next line that is shown
// says how many were left out. Pure; not thread-safe.
class LogThrottle {
 public:
  LogThrottle(Millis period, std::size_t lines_max) : period_(period), lines_max_(lines_max) {}

  // The line to show for `line` now, or nullopt when it is to be left out.
  std::optional<std::string> pass(const std::string& line, Instant now);

 private:
  Millis period_;
  std::size_t lines_max_;
  std::optional<Instant> period_began_;
  std::set<std::string> shown_;  // in this period; at most lines_max_
  std::uint64_t left_out_ = 0;   // since the last line that was shown
};

}  // namespace gleaner

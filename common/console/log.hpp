// Where programs say what happens besides their results. A sink is handed to whoever logs; there is
// no global one. Cores do not log: they return what is to be logged.
#pragma once

#include <cstdint>
#include <string_view>

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

}  // namespace gleaner

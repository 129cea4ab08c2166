// The form in which a program shows what happens, and how much of it. Plain values.
#pragma once

#include <cstdint>

#include "common/console/log.hpp"
#include "common/console/terminal.hpp"

namespace gleaner {

enum class OutputMode : std::uint8_t { kTerminal, kPlain, kJson };

struct OutputOptions {
  OutputMode mode = OutputMode::kPlain;
  TextStyle style;
  bool quiet = false;
  bool verbose = false;

  [[nodiscard]] bool shows(LogLevel level) const {
    if (quiet) return level >= LogLevel::kWarning;
    return verbose || level >= LogLevel::kInfo;
  }
};

// What suits the stream: JSON when asked for, else by what it leads to.
inline OutputOptions output_options(const TerminalFacts& out, bool json, bool quiet, bool verbose) {
  OutputOptions options;
  options.quiet = quiet;
  options.verbose = verbose;
  if (json) {
    options.mode = OutputMode::kJson;
  } else if (out.is_terminal) {
    options.mode = OutputMode::kTerminal;
    options.style = out.style;
  }
  return options;
}

}  // namespace gleaner

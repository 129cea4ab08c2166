// The form in which a program shows what happens, and how much of it. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "common/console/journal.hpp"
#include "common/console/log.hpp"
#include "common/console/terminal.hpp"

namespace gleaner {

// Names of --log-format. Text is for people.
enum class LogFormat : std::uint8_t { kText, kJson };

enum class OutputMode : std::uint8_t { kTerminal, kPlain, kJson };

struct OutputOptions {
  OutputMode mode = OutputMode::kPlain;
  TextStyle style;
  bool quiet = false;
  bool verbose = false;
  std::optional<Journal> journal{};  // takes the place of plain lines

  [[nodiscard]] bool shows(LogLevel level) const {
    if (quiet) return level >= LogLevel::kWarning;
    return verbose || level >= LogLevel::kInfo;
  }
};

// Chooses JSON when it is asked for, and otherwise the form that suits the stream's other end.
inline OutputOptions output_options(const TerminalFacts& out, LogFormat format, bool quiet,
                                    bool verbose, std::optional<Journal> journal = {}) {
  OutputOptions options;
  options.quiet = quiet;
  options.verbose = verbose;
  if (format == LogFormat::kJson) {
    options.mode = OutputMode::kJson;
  } else if (journal) {
    options.journal = std::move(journal);
  } else if (out.is_terminal) {
    options.mode = OutputMode::kTerminal;
    options.style = out.style;
  }
  return options;
}

}  // namespace gleaner

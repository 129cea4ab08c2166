// The form and the amount of a program's messages. Plain values.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/console/log.hpp"
#include "common/console/terminal.hpp"

namespace gleaner {

// The systemd journal, for a program whose output leads there. Each message becomes an entry with
// fields, for `journalctl GLEANER_EVENT=checkpoint -o json`. One thread.

// The levels of syslog(3).
enum class Priority : std::uint8_t { kError = 3, kWarning = 4, kNotice = 5, kInfo = 6, kDebug = 7 };

Priority priority_of(LogLevel level);

// "NAME=value" for each field of an entry. `event` is a JSON object: its member `event` becomes
// GLEANER_EVENT, `loss` becomes GLEANER_LOSS; null members are left out.
std::vector<std::string> journal_fields(const std::string& identifier, Priority priority,
                                        std::string_view message, std::string_view event);

class Journal {
 public:
  using Send = std::function<void(const std::vector<std::string>& fields)>;

  Journal(std::string identifier, Send send)
      : identifier_(std::move(identifier)), send_(std::move(send)) {}

  // Nullopt if `stream` does not lead to the journal, or libsystemd is missing: lines of text then
  // have the same content. Call at start-up, before other threads run.
  static std::optional<Journal> behind(std::FILE* stream, std::string identifier);

  void write(Priority priority, std::string_view message, std::string_view event) const {
    send_(journal_fields(identifier_, priority, message, event));
  }

 private:
  std::string identifier_;
  Send send_;
};

// Values of --log-format. Text is for people.
enum class LogFormat : std::uint8_t { kText, kJson };

enum class OutputMode : std::uint8_t { kTerminal, kPlain, kJson };

struct OutputOptions {
  OutputMode mode = OutputMode::kPlain;
  TextStyle style;
  bool quiet = false;
  bool verbose = false;
  std::optional<Journal> journal{};  // replaces plain lines

  [[nodiscard]] bool shows(LogLevel level) const {
    if (quiet) return level >= LogLevel::kWarning;
    return verbose || level >= LogLevel::kInfo;
  }
};

// JSON if requested, otherwise the form that suits the stream.
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

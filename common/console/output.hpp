// The form in which a program shows what happens, and how much of it. Plain values.
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

// The systemd journal, for a program whose output leads there: what happens becomes an entry with
// fields of its own, so that `journalctl GLEANER_EVENT=checkpoint -o json` finds it. One thread.

// As syslog(3) counts.
enum class Priority : std::uint8_t { kError = 3, kWarning = 4, kNotice = 5, kInfo = 6, kDebug = 7 };

Priority priority_of(LogLevel level);

// "NAME=value" for each field of an entry. `event` is a JSON object: its member `event` becomes
// GLEANER_EVENT, `loss` GLEANER_LOSS, and null no field.
std::vector<std::string> journal_fields(const std::string& identifier, Priority priority,
                                        std::string_view message, std::string_view event);

class Journal {
 public:
  using Send = std::function<void(const std::vector<std::string>& fields)>;

  Journal(std::string identifier, Send send)
      : identifier_(std::move(identifier)), send_(std::move(send)) {}

  // Nullopt where `stream` does not lead to the journal, or libsystemd is missing: a line of text
  // then says the same. Call at start-up, before other threads run.
  static std::optional<Journal> behind(std::FILE* stream, std::string identifier);

  void write(Priority priority, std::string_view message, std::string_view event) const {
    send_(journal_fields(identifier_, priority, message, event));
  }

 private:
  std::string identifier_;
  Send send_;
};

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

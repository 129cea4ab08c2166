// The master's console: shows snapshots and events in one of three ways. On a terminal, a progress
// line that is updated in place below the lines that stay; elsewhere plain lines, a progress line
// now and then; with --log-format json, one object a line. Results go to `out`, warnings and errors
// of the text forms to `error`. Time is a parameter. I/O thread only.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/console/log.hpp"
#include "common/console/output.hpp"
#include "common/console/terminal.hpp"
#include "common/time.hpp"
#include "master/see/run_events.hpp"

namespace gleaner {

class Console : public LogSink {
 public:
  // The streams outlive this. `width` is asked before every progress line; `clock` at every event.
  Console(std::FILE* out, std::FILE* error, OutputOptions options, std::function<unsigned()> width,
          std::function<Instant()> clock);

  // Call as often as you like: it prints at the pace of its mode, and at once when the stage or
  // what the run waits for has changed.
  void update(const RunProgress& run);
  // RunFinished, RunStopped and RunFailed are the last word: of what follows, updates are ignored,
  // and with JSON events too.
  void event(const RunEvent& event);

  // Who is told every event, log lines too, before it is shown or left out. May be empty.
  void tell(std::function<void(const RunEvent&)> listener) { listener_ = std::move(listener); }

  void log(LogLevel level, std::string_view message) override;

 private:
  [[nodiscard]] bool is_due(const RunProgress& run, Instant now) const;
  void print(const std::string& text);
  void print_error(const std::string& text);
  [[nodiscard]] std::string stamped(const std::string& text) const;

  std::FILE* out_;
  std::FILE* error_;
  OutputOptions options_;
  std::function<unsigned()> width_;
  std::function<Instant()> clock_;
  std::function<void(const RunEvent&)> listener_;
  Instant start_;
  std::optional<Instant> shown_at_;
  RunProgress shown_;
  bool is_over_ = false;
  TerminalLine line_;
};

}  // namespace gleaner

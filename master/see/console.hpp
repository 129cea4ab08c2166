// The master's console. On a terminal it updates a progress line below the lines that stay.
// Elsewhere it prints plain lines, with a progress line from time to time. With --log-format json
// it prints one object per line. Results go to `out`; warnings and errors of the text forms go to
// `error`. Time is a parameter. I/O thread only.
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
  // The streams outlive this. `width` is called before every progress line, `clock` at every event.
  Console(std::FILE* out, std::FILE* error, OutputOptions options, std::function<unsigned()> width,
          std::function<Instant()> clock);

  // May be called at any rate. Prints at the pace of its mode, and at once when the stage or the
  // wait changes.
  void update(const RunProgress& run);
  // After RunFinished, RunStopped or RunFailed updates are ignored, and JSON events too.
  void event(const RunEvent& event);

  // `listener` gets every event, log lines too, before it is shown or left out. May be empty.
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

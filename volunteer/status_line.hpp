// Shows in one line what a volunteer does and why. On a terminal the line is updated in place.
// Elsewhere a line is printed when its words change, not when a number moves. JSON prints an object
// instead. I/O thread only.
#pragma once

#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "common/console/log.hpp"
#include "common/console/output.hpp"
#include "common/console/terminal.hpp"
#include "common/time.hpp"
#include "volunteer/volunteer_status.hpp"

namespace gleaner {

class StatusLine : public LogSink {
 public:
  // The streams outlive this. `width` and `clock` are called at every update.
  StatusLine(std::FILE* out, std::FILE* error, OutputOptions options,
             std::function<unsigned()> width, std::function<Instant()> clock);

  // To be called after any change.
  void update(const VolunteerStatus& status);
  // Warnings and errors go to the error stream. JSON objects {"event":"log",...} go to `out`.
  void log(LogLevel level, std::string_view message) override;

 private:
  void print(const std::string& text);

  std::FILE* out_;
  std::FILE* error_;
  OutputOptions options_;
  std::function<unsigned()> width_;
  std::function<Instant()> clock_;
  std::optional<Instant> shown_at_;
  std::string news_;
  bool is_retrying_ = false;
  bool is_training_ = false;  // as the last line says, in this epoch
  std::uint32_t epoch_ = 0;
  TerminalLine line_;
};

}  // namespace gleaner

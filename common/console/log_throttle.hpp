// Keeps strangers from filling the log. Whatever they do: within a period each sentence about each
// of them is shown once, and not more than a limit of lines in all; the next line that is shown
// says how many were left out. Pure; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "common/time.hpp"

namespace gleaner {

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

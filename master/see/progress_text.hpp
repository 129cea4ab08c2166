// The progress of a run as one line. Pure functions.
#pragma once

#include <string>

#include "common/console/terminal.hpp"
#include "schema/tool_messages.hpp"

namespace gleaner {

// Figures as people read them: rounded, and with words for long times.
std::string rate_shown(double value);
std::string seconds_shown(double seconds);

// A line of at most `width` columns with a bar. The least important parts are shortened, then left
// out, until the rest fits.
std::string progress_line(const RunProgress& run, unsigned width, TextStyle style);

// All figures, as a log line.
std::string progress_log_line(const RunProgress& run);

}  // namespace gleaner

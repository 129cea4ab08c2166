// How a run stands, as a master says it, for people and programs. Pure functions.
#pragma once

#include <string>

#include "common/console/terminal.hpp"
#include "schema/messages.hpp"
#include "tools/cli/report.hpp"

namespace gleaner {

Report status_report(const RunStatus& status, const std::string& address, TextStyle style);

}  // namespace gleaner

// gleaner status, gleaner why: what a run is doing now, asked of its master.
#pragma once

#include <string>

#include "common/console/terminal.hpp"
#include "schema/messages.hpp"
#include "tools/cli/report.hpp"

namespace CLI {
class App;
}

namespace gleaner {

// How a run stands, as a master says it, for people and programs. Pure functions.
Report status_report(const RunStatus& status, const std::string& address, TextStyle style);

// Adds the verbs to `app`. Each sets `exit_status` when it has run.
void add_status_commands(CLI::App& app, int& exit_status);

}  // namespace gleaner

// `gleaner history`: a run's metrics, checkpoint by checkpoint.
#pragma once

#include <string>
#include <vector>

#include "storage/run_store.hpp"
#include "tools/cli/report.hpp"

namespace CLI {
class App;
}

namespace gleaner {

// Adds the sub-command `history` to `app`. It runs while `app` parses a command line that names it
// and puts the exit status into `exit_status`, which must outlive the parsing: 0 done, 1 failure of
// the system, 2 usage, 4 no usable store.
void add_history_command(CLI::App& app, int& exit_status);

// The records as a table, at most 100 columns wide for people; what was not measured is a dash.
Report history_report(const std::vector<RoundRecord>& records);

// One JSON object a line for such a report; what was not measured is null.
std::string history_json_lines(const Report& report);

}  // namespace gleaner

// `gleaner plan`: what a run is to be expected to do, before there is one.
#pragma once

namespace CLI {
class App;
}

namespace gleaner {

// Adds the sub-command `plan` to `app`, as add_history_command does. Exit status: 0 done, 1 failure
// of the system, 2 usage, 3 a file of costs that cannot be used.
void add_plan_command(CLI::App& app, int& exit_status);

}  // namespace gleaner

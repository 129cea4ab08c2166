// `gleaner inspect`: what is in a store, in views that are each read at a glance.
#pragma once

namespace CLI {
class App;
}

namespace gleaner {

// Adds the sub-command `inspect` to `app`; see add_history_command.
void add_inspect_command(CLI::App& app, int& exit_status);

}  // namespace gleaner

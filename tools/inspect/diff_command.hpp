// `gleaner diff`: what two stores have in common and what not.
#pragma once

namespace CLI {
class App;
}

namespace gleaner {

// Adds the sub-command `diff` to `app`; see add_history_command.
void add_diff_command(CLI::App& app, int& exit_status);

}  // namespace gleaner

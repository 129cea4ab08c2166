// `gleaner export`: a trained model as a file for other programs.
#pragma once

namespace CLI {
class App;
}

namespace gleaner {

// Adds the sub-command `export` to `app`; see add_history_command.
void add_export_command(CLI::App& app, int& exit_status);

}  // namespace gleaner

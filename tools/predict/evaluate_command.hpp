// `gleaner evaluate`: how good a trained model is on points with labels.
#pragma once

namespace CLI {
class App;
}

namespace gleaner {

// Adds the sub-command `evaluate` to `app`; see add_history_command.
void add_evaluate_command(CLI::App& app, int& exit_status);

}  // namespace gleaner

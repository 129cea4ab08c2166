// `gleaner verify` and `gleaner repair`: whether a store is whole, and making it so.
#pragma once

namespace CLI {
class App;
}

namespace gleaner {

// Adds the sub-commands `verify` and `repair` to `app`; see add_history_command.
void add_verify_commands(CLI::App& app, int& exit_status);

}  // namespace gleaner

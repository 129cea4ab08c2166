// `gleaner completion`: what a shell needs to complete the command line, generated from the
// definitions of the command line itself.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace gleaner {

// The script for "bash", "zsh" or "fish"; zsh reads bash's through bashcompinit.
std::string completion_script(const CLI::App& app, const std::string& shell);

// Adds the sub-command `completion` to `app`; see add_history_command.
void add_completion_command(CLI::App& app, int& exit_status);

}  // namespace gleaner

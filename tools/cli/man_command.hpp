// `gleaner man`: the program's manual page, made of its own command line.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace gleaner {

// Adds the sub-command `man` to `app`, whose verbs and flags it describes; see add_history_command.
void add_man_command(CLI::App& app, int& exit_status);

// The page for man(1): every verb with its description, examples and flags.
std::string manual_page(const CLI::App& app);

}  // namespace gleaner

// gleaner launch: the files that start volunteers or a master on what runs programs.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace gleaner {

// Runs another program and waits for it.

// Runs `words` (a program as the shell finds it, and its arguments) in `folder`, with this
// process's input and output. An error says how it ended.
Result<void> run_command(const std::vector<std::string>& words, const std::string& folder);

void add_launch_command(CLI::App& app, int& exit_status);

}  // namespace gleaner

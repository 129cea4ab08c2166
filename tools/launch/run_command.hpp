// Runs another program and waits for it.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"

namespace gleaner {

// Runs `words` (a program as the shell finds it, and its arguments) in `folder`, with this
// process's input and output. An error says how it ended.
Result<void> run_command(const std::vector<std::string>& words, const std::string& folder);

}  // namespace gleaner

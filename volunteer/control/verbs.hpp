// Verbs that a person says to a running volunteer: gleaner-volunteer status, pause, resume, snooze
// 2h, finish, log; and session-helper, which a graphical session runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/exit_code.hpp"
#include "volunteer/control/join.hpp"

namespace gleaner::volunteer {

// One line a verb, for --help.
std::string verbs_help();

// The words after the program's name in a command that was pasted behind that name.
std::vector<std::string> without_pasted_name(std::vector<std::string> arguments);

// Does what the first argument says and returns the exit code; nullopt when it is no verb. Prints
// to standard output and error. `reach` is for join.
std::optional<ExitCode> run_verb(const std::vector<std::string>& arguments, const Reach& reach);

// The answer to {"verb":"status"} for people: a sentence, then a table.
std::string status_table(const std::string& answer);

}  // namespace gleaner::volunteer

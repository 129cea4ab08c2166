// Verbs that a person says to a running volunteer: gleaner-volunteer status, pause, resume, snooze
// 2h, finish, log; and session-helper, which a graphical session runs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/access/addresses.hpp"
#include "common/result.hpp"

namespace gleaner::volunteer {

// gleaner-volunteer join: a machine is lent from now on, by the service that Debian's package
// brings.

// Whether the master answers; an error says why it does not.
using Reach = std::function<Result<void>(const MasterAddress&)>;

// The machine as joining sees and changes it; tests put others in the place.
struct JoinPlace {
  bool is_root = false;
  bool has_systemd = false;  // as the machine's init, and running
  bool has_unit = false;     // gleaner-volunteer.service is installed
  Reach reach;
  // Runs a program of the PATH and returns whether it succeeded.
  std::function<bool(const std::vector<std::string>&)> run;
};

JoinPlace this_machine(Reach reach);

// Where join() keeps the line: a file that the unit passes to the service as a credential.
std::string line_file();

// Tells what an attempt to reach the master has shown.
std::string reach_sentence(const MasterAddress& address, const Result<void>& reached);

// Keeps `line` in `file`, readable by its owner alone, and starts the unit now and with the
// machine. Where it cannot do one of them, it returns the command that does. A master that cannot
// be reached yet is no error: the service waits for it, and the text says why it cannot. An empty
// `line` is read from standard input, where no history of commands keeps it.
Result<std::string> join(std::string line, const std::string& file, const JoinPlace& place);

// Undoes join(): the service is stopped, which hands the shards over, and starts no more; the line
// is deleted.
Result<std::string> leave(const std::string& file, const JoinPlace& place);

// One line a verb, for --help.
std::string verbs_help();

// The words after the program's name in a command that was pasted behind that name.
std::vector<std::string> without_pasted_name(std::vector<std::string> arguments);

// Does what the first argument says and returns the exit code; nullopt when it is no verb. Prints
// to standard output and error. `reach` is for join.
std::optional<ExitCode> run_verb(const std::vector<std::string>& arguments, const Reach& reach);

// Does `work` with the arguments and returns its exit code. Where Windows started this program as
// the service that join() made, its wish to stop arrives as SIGTERM.
int run_as_started(std::vector<std::string> arguments,
                   const std::function<int(std::vector<std::string>)>& work);

// Tells whoever started this program as a service that it ends.
void note_end(int status);

// The answer to {"verb":"status"} for people: a sentence, then a table.
std::string status_table(const std::string& answer);

}  // namespace gleaner::volunteer

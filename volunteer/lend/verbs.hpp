// Verbs for a running volunteer: gleaner-volunteer status, pause, resume, snooze 2h, finish, log;
// and session-helper, which a graphical session runs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/access/addresses.hpp"
#include "common/result.hpp"

namespace gleaner::volunteer {

// gleaner-volunteer join lends a machine from now on, by the service of the Debian package.

// Whether the master answers; otherwise an error with the reason.
using Reach = std::function<Result<void>(const MasterAddress&)>;
// Describes the master's run, and its needs, as text.
using Tell = std::function<Result<std::string>(const MasterAddress&)>;

// The machine as join() sees and changes it; tests substitute their own.
struct JoinPlace {
  bool is_root = false;
  bool has_systemd = false;  // as the machine's init, and running
  bool has_unit = false;     // gleaner-volunteer.service is installed
  Reach reach;
  // Runs a program of the PATH and returns whether it succeeded.
  std::function<bool(const std::vector<std::string>&)> run;
};

JoinPlace this_machine(Reach reach);

// The file for the line, which the unit passes to the service as a credential.
std::string line_file();

// Tells the outcome of an attempt to reach the master.
std::string reach_sentence(const MasterAddress& address, const Result<void>& reached);

// Stores `line` in `file`, readable by its owner alone, and starts the unit now and with the
// machine. Returns text for the user, with the commands for steps that it cannot do. An unreachable
// master is no error: the service waits for it, and the text gives the reason. An empty `line` is
// read from standard input, which keeps it out of the command history.
Result<std::string> join(std::string line, const std::string& file, const JoinPlace& place);

// Undoes join(): stops the service, which hands the shards over, disables it, and deletes the line.
Result<std::string> leave(const std::string& file, const JoinPlace& place);

// Shows the key in the folder `cache`, or by `words` exports or imports it. Returns text for the
// user. The account of a key at a master goes on wherever the key is.
Result<std::string> identity(const std::vector<std::string>& words, const std::string& cache);

// One line a verb, for --help.
std::string verbs_help();

// Drops the program's name from a command that was pasted behind that name.
std::vector<std::string> without_pasted_name(std::vector<std::string> arguments);

// Runs the verb in the first argument and returns the exit code; nullopt when it is no verb. Prints
// to standard output and error. `reach` is for join, `tell` for about.
std::optional<ExitCode> run_verb(const std::vector<std::string>& arguments, const Reach& reach,
                                 const Tell& tell);

// Calls `work` with the arguments and returns its exit code. If Windows started this program as the
// service, the service's stop request arrives as SIGTERM.
int run_as_started(std::vector<std::string> arguments,
                   const std::function<int(std::vector<std::string>)>& work);

// If Windows started this program as the service, reports that the program ends.
void note_end(int status);

// Turns the answer to {"verb":"status"} into text: a sentence, then a table.
std::string status_table(const std::string& answer);

}  // namespace gleaner::volunteer

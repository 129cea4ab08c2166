// `gleaner export`: a trained model as a file for other programs.
#pragma once

namespace CLI {
class App;
}

namespace gleaner {

// Adds the sub-command `export` to `app`; see add_history_command.
void add_export_command(CLI::App& app, int& exit_status);

// `gleaner import`: a run that begins with a model from a file.

// Adds the sub-command `import` to `app`. It runs while `app` parses a command line that names it
// and puts the exit status into `exit_status`, which must outlive the parsing. When it starts a run
// it does not return: the process becomes gleaner-master.
void add_import_command(CLI::App& app, int& exit_status);

}  // namespace gleaner

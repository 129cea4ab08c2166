// `gleaner verify` and `gleaner repair`: whether a store is whole, and making it so.
#pragma once

namespace CLI {
class App;
}

namespace gleaner {

// Adds the sub-commands `verify` and `repair` to `app`; see add_history_command.
void add_verify_commands(CLI::App& app, int& exit_status);

// `gleaner checkpoint`: what can be asked of a store's checkpoint.

// Adds the sub-command `checkpoint` and its verbs to `app`. The verb that the command line names
// runs while `app` parses it and puts the exit status into `exit_status`, which must outlive the
// parsing: 0 done, 1 failure of the system, 2 usage, 4 no usable store.
void add_checkpoint_commands(CLI::App& app, int& exit_status);

// `gleaner backup` and `gleaner restore`: what --backup of gleaner-master made, and back again.

// Adds both to `app`. The one that the command line names runs while `app` parses it and puts the
// exit status into `exit_status`, which must outlive the parsing: 0 done, 1 failure of the system,
// 2 usage, 4 no usable backup or store.
void add_backup_commands(CLI::App& app, int& exit_status);

}  // namespace gleaner

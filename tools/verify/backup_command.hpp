// `gleaner backup` and `gleaner restore`: what --backup of gleaner-master made, and back again.
#pragma once

namespace CLI {
class App;
}

namespace gleaner {

// Adds both to `app`. The one that the command line names runs while `app` parses it and puts the
// exit status into `exit_status`, which must outlive the parsing: 0 done, 1 failure of the system,
// 2 usage, 4 no usable backup or store.
void add_backup_commands(CLI::App& app, int& exit_status);

}  // namespace gleaner

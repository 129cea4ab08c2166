// `gleaner checkpoint`: what can be asked of a store's checkpoint.
#pragma once

namespace CLI {
class App;
}

namespace gleaner {

// Adds the sub-command `checkpoint` and its verbs to `app`. The verb that the command line names
// runs while `app` parses it and puts the exit status into `exit_status`, which must outlive the
// parsing: 0 done, 1 failure of the system, 2 usage, 4 no usable store.
void add_checkpoint_commands(CLI::App& app, int& exit_status);

}  // namespace gleaner

// gleaner status, gleaner why: what a run is doing now, asked of its master.
#pragma once

namespace CLI {
class App;
}

namespace gleaner {

// Adds the verbs to `app`. Each sets `exit_status` when it has run.
void add_status_commands(CLI::App& app, int& exit_status);

}  // namespace gleaner

// gleaner invite, peers, approve, ban, unban: who may do what with a run.
#pragma once

namespace CLI {
class App;
}

namespace gleaner {

// Adds the verbs to `app`. Each sets `exit_status` when it has run.
void add_access_commands(CLI::App& app, int& exit_status);

}  // namespace gleaner

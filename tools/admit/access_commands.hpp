// gleaner invite, peers, approve, ban, unban: who may do what with a run.
#pragma once

#include <string>

#include "common/result.hpp"
#include "schema/messages.hpp"

namespace CLI {
class App;
}

namespace gleaner {

// Where a change of who may do what takes place: in a running master, or in the store of one that
// does not run.

// `where` is the folder of a store, or an administrator's address gleaner://HOST:PORT/KEY.INVITE.
Result<AccessAnswer> change_access(const std::string& where, const AccessRequest& request);

// Adds the verbs to `app`. Each sets `exit_status` when it has run.
void add_access_commands(CLI::App& app, int& exit_status);

}  // namespace gleaner

// Asking a running master: one connection, one question, one answer.
#pragma once

#include <string>

#include "common/access/addresses.hpp"
#include "common/result.hpp"
#include "schema/messages.hpp"
#include "storage/engine/master_note.hpp"

namespace gleaner {

// Errors name HOST:PORT. kIo when nobody answers there, kIdentity when another key does; what the
// master refuses has the code it gave.
Result<RunStatus> ask_status(const MasterAddress& address);
// The invite and the protocol of `request` are filled in here.
Result<AccessAnswer> ask_access(const MasterAddress& address, AccessRequest request);

// The exit status of a verb that asked: a master that cannot be asked is a matter of the network,
// and everything else one of the store.
int exit_status_of_asking(const Result<void>& done);

// How the holder of the folder `store` reaches the port that `note` tells of: as an administrator,
// by the master's own key. In plain text where the master encrypts nothing.
Result<MasterAddress> owner_address(const std::string& store, const RunningMaster& note);

}  // namespace gleaner

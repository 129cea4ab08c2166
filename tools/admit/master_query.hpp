// Questions to a running master: one connection, one question, one answer.
#pragma once

#include <string>

#include "common/access/addresses.hpp"
#include "common/result.hpp"
#include "schema/messages.hpp"
#include "storage/engine/store_folder.hpp"

namespace gleaner {

// Errors name HOST:PORT: kIo when nobody answers, kIdentity when the key is another one, else the
// code of the master's refusal.
Result<RunStatus> ask_status(const MasterAddress& address);
// Fills in the invite and the protocol of `request`.
Result<AccessAnswer> ask_access(const MasterAddress& address, AccessRequest request);

// The exit status of a verb that asked: network trouble when the master could not be asked, else
// store trouble.
int exit_status_of_asking(const Result<void>& done);

// The address at which the owner of the folder `store` asks the master of `note`, as an
// administrator, by the master's own key. Plain text where the master encrypts nothing.
Result<MasterAddress> owner_address(const std::string& store, const RunningMaster& note);

}  // namespace gleaner

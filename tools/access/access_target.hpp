// Where a change of who may do what takes place: in a running master, or in the store of one that
// does not run.
#pragma once

#include <string>

#include "common/result.hpp"
#include "schema/messages.hpp"

namespace gleaner {

// `where` is the folder of a store, or an administrator's address gleaner://HOST:PORT/KEY.INVITE.
Result<AccessAnswer> change_access(const std::string& where, const AccessRequest& request);

}  // namespace gleaner

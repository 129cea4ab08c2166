// Why a run stands as it does, in sentences. Pure functions; names of peers are made harmless.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"
#include "schema/messages.hpp"

namespace gleaner {

// One or two short sentences: what the run is doing, why it stands still where it does, and until
// when.
std::string headline(const RunStatus& status);

// `about` may be "run", a shard's number, or a volunteer's name. kInvalidArgument says what
// there is when it is none of them.
Result<std::vector<std::string>> why(const RunStatus& status, const std::string& about);

}  // namespace gleaner

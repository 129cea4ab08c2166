// Why a run stands as it does, in sentences. Pure functions; names of peers are made harmless.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"
#include "schema/messages.hpp"

namespace gleaner {

// One or two short sentences: what the run is doing, why it stands still where it does, and until
// when. Names of peers are made printable.
std::string headline(const RunStatus& status);

// Explains the state of `about`: "run", a shard's number, or a volunteer's name. kInvalidArgument
// lists what there is.
Result<std::vector<std::string>> why(const RunStatus& status, const std::string& about);

}  // namespace gleaner

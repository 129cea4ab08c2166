// Explains to people why a run, a shard or a volunteer is as it is. Names of peers are made
// printable.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"
#include "schema/messages.hpp"

namespace gleaner {

// Explains the state of the run in one or two short sentences: its activity, or why it stands still
// and until when.
std::string headline(const RunStatus& status);

// Explains the state of `about`: "run", a shard's number, or a volunteer's name. kInvalidArgument
// lists what there is.
Result<std::vector<std::string>> why(const RunStatus& status, const std::string& about);

}  // namespace gleaner

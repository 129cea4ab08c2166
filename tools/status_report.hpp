// How a run stands, as a master says it, for people and programs; and why it stands so, in
// sentences. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"
#include "common/terminal.hpp"
#include "schema/messages.hpp"
#include "tools/report.hpp"

namespace gleaner {

Report status_report(const RunStatus& status, const std::string& address, TextStyle style);

// What `about` may be: "run", a shard's number, or a volunteer's name. kInvalidArgument says what
// there is when it is none of them.
Result<std::vector<std::string>> why(const RunStatus& status, const std::string& about);

}  // namespace gleaner

// How a run stands, as a master says it, for people and programs; and why it stands so, in
// sentences. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/console/terminal.hpp"
#include "common/result.hpp"
#include "schema/messages.hpp"
#include "tools/cli/report.hpp"

namespace gleaner {

// Whether the shard at this place belongs to the input layer.
inline bool is_input(const RunStatus& status, std::size_t shard) {
  return shard + status.input_shards >= status.shards.size();
}

Report status_report(const RunStatus& status, const std::string& address, TextStyle style);

// What `about` may be: "run", a shard's number, or a volunteer's name. kInvalidArgument says what
// there is when it is none of them.
Result<std::vector<std::string>> why(const RunStatus& status, const std::string& about);

}  // namespace gleaner

// The run for programs: one JSON object without a newline for each event (EVENTS.md). Pure.
#pragma once

#include <string>

#include "master/see/run_events.hpp"

namespace gleaner {

std::string event_json(const RunEvent& event);
std::string progress_json(const RunProgress& progress);

}  // namespace gleaner

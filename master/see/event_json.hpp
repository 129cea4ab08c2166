// Events and progress as JSON, for programs that read events (EVENTS.md).
#pragma once

#include <string>

#include "master/see/page_view.hpp"
#include "master/see/run_events.hpp"

namespace gleaner {

// An event, or the progress, as one JSON object without newline.
std::string event_json(const RunEvent& event);
std::string progress_json(const RunProgress& progress);

// `id` lets a returning reader name the last event that it has.
std::string event_shown_json(const EventShown& event, const std::string& id);

}  // namespace gleaner

// Events and progress as JSON, for programs that read events (EVENTS.md).
#pragma once

#include <string>

#include "master/see/page_view.hpp"
#include "master/see/run_events.hpp"

namespace gleaner {

// One JSON object without a newline for an event, and for the progress at a moment.
std::string event_json(const RunEvent& event);
std::string progress_json(const RunProgress& progress);

// `id` names the event for a reader that comes back.
std::string event_shown_json(const EventShown& event, const std::string& id);

}  // namespace gleaner

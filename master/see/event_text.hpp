// Events in words, and for whom they are news. Pure functions.
#pragma once

#include <string>

#include "common/console/terminal.hpp"
#include "master/see/page_view.hpp"
#include "master/see/run_events.hpp"

namespace gleaner {

// The command that makes an invite for other people's machines. Empty where the invite of
// `listening.join` is not trusted, or where everybody may take part.
std::string command_for_others(const Listening& listening);

// Lines for the console on how machines join. Only the first line is free of secrets.
std::string join_text(const Listening& listening);

// The event as a log line, or as several.
std::string event_line(const RunEvent& event, TextStyle style);

// The level at which an event is shown: below kInfo only with --verbose, above kInfo also with
// --quiet. Results count as warnings.
LogLevel importance(const RunEvent& event);

// Events and progress as JSON, for programs that read events (EVENTS.md).

// An event, or the progress, as one JSON object without newline.
std::string event_json(const RunEvent& event);
std::string progress_json(const RunProgress& progress);

// `id` lets a returning reader name the last event that it has.
std::string event_shown_json(const EventShown& event, const std::string& id);

}  // namespace gleaner

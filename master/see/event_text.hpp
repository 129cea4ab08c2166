// Events in words, and for whom they are news. Pure functions.
#pragma once

#include <string>

#include "common/console/terminal.hpp"
#include "master/see/run_events.hpp"

namespace gleaner {

// How machines join, and for whom the line is.

// The command that makes an invite for other people's machines; empty where `listening.join` trusts
// nobody, or everybody takes part anyway.
std::string command_for_others(const Listening& listening);

// Some lines for the console; the first one holds no secret.
std::string join_text(const Listening& listening);

// The event as a log line; long ones run on over several lines.
std::string event_line(const RunEvent& event, TextStyle style);

// Who wants to read of an event: a level below kInfo only with --verbose, one above also with
// --quiet. Results count as warnings here.
LogLevel importance(const RunEvent& event);

}  // namespace gleaner

// How machines join, and for whom the line is.
#pragma once

#include <string>

#include "master/console/progress_events.hpp"

namespace gleaner {

// The command that makes an invite for other people's machines; empty where `listening.join` trusts
// nobody, or everybody takes part anyway.
std::string command_for_others(const Listening& listening);

// Some lines for the console; the first one holds no secret.
std::string join_text(const Listening& listening);

}  // namespace gleaner

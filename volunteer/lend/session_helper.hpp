// Runs in an X11 session and tells the volunteer of input there, ten times a second when there is
// any, else once a second. For sessions whose desktop does not tell logind. Windows tells of its
// sessions itself: there it shows the volunteer's icon.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"

namespace gleaner::volunteer {

// Returns when the session or the volunteer is gone, and why. The X11 libraries are loaded when it
// begins, so that a server without them can run a volunteer.
Error help_session(const std::vector<std::string>& control_paths);

}  // namespace gleaner::volunteer

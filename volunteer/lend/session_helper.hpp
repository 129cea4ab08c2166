// Reports input in an X11 session to the volunteer: ten times a second while there is input,
// otherwise once a second. For sessions whose desktop does not report to logind. Under Windows it
// shows the volunteer's icon instead, since Windows reports its sessions itself.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"

namespace gleaner::volunteer {

// Returns when the session or the volunteer is gone, with the reason. Loads the X11 libraries when
// it begins, so that a server without them can run a volunteer.
Error help_session(const std::vector<std::string>& control_paths);

// Ends the program of the Windows icon, if one runs in this session.
void close_tray();

}  // namespace gleaner::volunteer

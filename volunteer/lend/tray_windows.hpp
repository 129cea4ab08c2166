// The volunteer's icon in the Windows tray. A program of its own (the verb session-helper), which
// sends verbs over the control pipe. One thread.
#pragma once

namespace gleaner::volunteer {

// Ends the icon's program, if one runs in this session.
void close_tray();

}  // namespace gleaner::volunteer

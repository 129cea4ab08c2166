// The volunteer's icon beside the clock, a program by itself (the verb session-helper), which asks
// by the control pipe as every verb does. One thread.
#pragma once

namespace gleaner::volunteer {

// Ends the icon's program, where one runs in this session.
void close_tray();

}  // namespace gleaner::volunteer

// Counts Ctrl-C for a thread that waits for a master. Python tells its main thread alone, so the
// signal is seen here on its way to Python's handler, which is called as before.
#pragma once

namespace gleaner {

// Begins to count, and goes on after another handler was installed. Where SIGINT is ignored or ends
// the process, it stays so. Any thread.
void watch_interrupts();

// Signals since the process began.
unsigned interrupts();

}  // namespace gleaner

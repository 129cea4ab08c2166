// Forks and Ctrl-C, of which Python tells its main thread alone.
#pragma once

namespace gleaner {

// Begins to count SIGINT on its way to Python's handler, which is called as before; to be called
// again when another handler may have been installed. Where SIGINT is ignored or ends the process,
// it stays so. Any thread.
void watch_interrupts();

// Signals since the process began.
unsigned interrupts();

// In the child of a fork(): its end does not wait for threads of libraries, which it does not have.
void end_without_destructors();

}  // namespace gleaner

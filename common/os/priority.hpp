// How far a thread gives way to others that want the processor. Any thread.
#pragma once

namespace gleaner {

// As nice(1) counts: 0 not at all, 19 the most.
inline constexpr int kNiceMax = 19;

// Further than that: the thread runs only when no other wants its processor, and what it reads and
// writes waits for everybody else's.
inline constexpr int kNiceIdle = kNiceMax + 1;

// How far a volunteer's compute threads give way unless a person says otherwise: to a master on
// the same machine, which everybody waits for, and to whatever else people run on theirs.
inline constexpr int kVolunteerNice = 10;

// Lowers the calling thread's priority to `nice`, at most kNiceIdle, where it is not lower already;
// it is never raised. Linux: threads that it starts have its priority. Windows knows five steps.
void give_way(int nice);

// The calling thread's niceness.
int niceness();

// Keeps the calling thread on one processor: the one at `index`, counted around, of those that it
// may run on.
void pin_to_processor(unsigned index);

// Makes this process the first to be ended when the machine runs out of memory.
void give_way_in_memory();

}  // namespace gleaner

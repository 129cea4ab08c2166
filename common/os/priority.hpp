// Priorities of threads. Any thread.
#pragma once

namespace gleaner {

// As nice(1) counts: 0 is normal priority, 19 the lowest.
inline constexpr int kNiceMax = 19;

// Still lower: the thread runs only when no other thread wants its processor, and its reads and
// writes wait for all others.
inline constexpr int kNiceIdle = kNiceMax + 1;

// Default of a volunteer's compute threads: a master on the same machine, which all volunteers wait
// for, and the user's other programs have priority.
inline constexpr int kVolunteerNice = 10;

// Lowers the calling thread's priority to `nice`, at most kNiceIdle; never raises it. Linux:
// threads that it starts inherit the priority. Windows has five steps.
void give_way(int nice);

// The calling thread's niceness.
int niceness();

// Binds the calling thread to one of its allowed processors: number `index`, modulo their count.
void pin_to_processor(unsigned index);

// Makes this process the first to be killed when the machine runs out of memory.
void give_way_in_memory();

}  // namespace gleaner

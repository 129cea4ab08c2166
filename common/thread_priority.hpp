// How far a thread gives way to others that want the processor.
#pragma once

namespace gleaner {

// As nice(1) counts: 0 not at all, 19 the most.
inline constexpr int kNiceMax = 19;

// How far a volunteer's compute threads give way unless a person says otherwise: to a master on
// the same machine, which everybody waits for, and to whatever else people run on theirs.
inline constexpr int kVolunteerNice = 10;

// Lowers the calling thread's priority to `nice`, where it is not lower already; it is never
// raised. Threads that it starts have its priority. Linux keeps priorities by thread.
void give_way(int nice);

// Of the calling thread.
int niceness();

}  // namespace gleaner

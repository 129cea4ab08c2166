// Ends in words what the system would end by a signal.
#pragma once

namespace gleaner {

// A file that may grow no further (ulimit -f) is an error of the write from now on, and what nobody
// catches is told as say_exception() tells it. To be called once, before there are threads.
void end_in_words(const char* program);

}  // namespace gleaner

// Invariants of our own code. GLEANER_CHECK is on in every build: a run that computes something
// wrong is worse than one that stops. Never reachable from a peer's input or a file's content.
#pragma once

namespace gleaner {

// Prints the broken invariant and aborts.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace gleaner

#define GLEANER_CHECK(condition)                               \
  do {                                                         \
    if (!(condition)) [[unlikely]]                             \
      ::gleaner::check_failed(#condition, __FILE__, __LINE__); \
  } while (false)

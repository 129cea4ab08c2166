// The meaning of the programs' exit status. Documented in every --help; append only.
#pragma once

#include "common/result.hpp"

namespace gleaner {

enum class ExitCode : int {
  kOk = 0,       // done, stopped cleanly, or nothing left to do
  kFailure = 1,  // none of the others
  kUsage = 2,    // a flag, a key or a configuration that cannot be used
  kData = 3,     // a data file that is missing, malformed or does not fit
  kStore = 4,    // the store is damaged, busy, or belongs to another run
  kNetwork = 5,  // cannot listen or connect, or the peer refused for good
};

// The status for an error that nothing more is known about. kIo and kNotFound become kFailure: only
// whoever touched the file knows whether it was data, store or network.
ExitCode exit_code_of(ErrorCode code);

// snake_case name of a code, as it stands in events.
const char* error_name(ErrorCode code);

// To be called in a handler of main's: says on standard error what exception has ended `program`;
// where it was want of memory, in the words of `no_memory`.
int say_exception(const char* program, const char* no_memory);

// The lines of --help that list the codes.
const char* exit_code_help();

}  // namespace gleaner

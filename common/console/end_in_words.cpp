#include "common/console/end_in_words.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "common/exit_code.hpp"

namespace gleaner {
namespace {

const char* ended_program = "gleaner";

// Loses nothing: the store takes a write as a whole or not at all.
[[noreturn]] void end_at_once() {
  constexpr const char* kUnknown = "it could not go on; what was stored is whole";
  if (std::current_exception()) {
    say_exception(ended_program, kUnknown);
  } else {
    std::fprintf(stderr, "%s: %s\n", ended_program, kUnknown);
  }
  std::_Exit(static_cast<int>(ExitCode::kFailure));
}

}  // namespace

void end_in_words(const char* program) {
  ended_program = program;
  std::signal(SIGXFSZ, SIG_IGN);
  std::set_terminate(&end_at_once);
}

}  // namespace gleaner

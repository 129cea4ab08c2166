#include "common/result.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <new>
#include <system_error>

#include "common/os/files.hpp"
#include "common/os/process.hpp"

namespace gleaner {
namespace {

constexpr const char* kNoThread =
    "this user may start no more threads here (see ulimit -u, or TasksMax of the service): raise "
    "that, or give --threads a smaller number. The stored data is complete";

const char* ended_program = "gleaner";

// Loses nothing: the store makes a write completely or not at all.
[[noreturn]] void end_at_once() {
  constexpr const char* kUnknown = "it could not go on; the stored data is complete";
  if (std::current_exception()) {
    say_exception(ended_program, kUnknown);
  } else {
    std::fprintf(stderr, "%s: %s\n", ended_program, kUnknown);
  }
  std::_Exit(static_cast<int>(ExitCode::kFailure));
}

}  // namespace

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "gleaner: internal error: %s does not hold (%s:%d)\n", condition, file,
               line);
  std::abort();
}

ExitCode exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kFinished:
    case ErrorCode::kShuttingDown:
    case ErrorCode::kReaderLost:
      return ExitCode::kOk;
    case ErrorCode::kInvalidArgument:
      return ExitCode::kUsage;
    case ErrorCode::kInvalidData:
      return ExitCode::kData;
    case ErrorCode::kCorrupt:
    case ErrorCode::kIdentity:
    case ErrorCode::kBusy:
      return ExitCode::kStore;
    case ErrorCode::kProtocol:
    case ErrorCode::kVersion:
    case ErrorCode::kInvite:
      return ExitCode::kNetwork;
    case ErrorCode::kIo:
    case ErrorCode::kNotFound:
    case ErrorCode::kStaleLease:
    case ErrorCode::kResources:
    case ErrorCode::kFault:
    case ErrorCode::kDiskFull:
    case ErrorCode::kStoreUnsure:
    case ErrorCode::kDiverged:
      return ExitCode::kFailure;
  }
  return ExitCode::kFailure;
}

const char* error_name(ErrorCode code) {
  // In the order of the codes, which begin at 1.
  constexpr const char* kNames[] = {
      "invalid_argument", "invalid_data", "io",       "corrupt",    "protocol",
      "version",          "invite",       "identity", "busy",       "not_found",
      "stale_lease",      "resources",    "fault",    "finished",   "shutting_down",
      "disk_full",        "store_unsure", "diverged", "reader_lost"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(ErrorCode::kReaderLost));
  const auto place = static_cast<std::size_t>(code) - 1;
  return place < std::size(kNames) ? kNames[place] : "unknown";
}

int say_exception(const char* program, const char* no_memory) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: %s\n", program, no_memory);
  } catch (const std::system_error& error) {
    const bool is_thread = error.code() == std::errc::resource_unavailable_try_again;
    std::fprintf(stderr, "%s: %s\n", program, is_thread ? kNoThread : error.what());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", program, error.what());
  } catch (...) {
    std::fprintf(stderr, "%s: it could not go on\n", program);
  }
  return static_cast<int>(ExitCode::kFailure);
}

const char* exit_code_help() {
  return "  0  done: finished, stopped cleanly, or nothing left to do\n"
         "  1  failure of another kind\n"
         "  2  a flag, key or configuration that cannot be used\n"
         "  3  a data file that is missing, malformed or does not fit\n"
         "  4  the store is damaged, busy, or belongs to another run\n"
         "  5  network: cannot listen or connect, or refused for good\n";
}

void end_in_words(const char* program) {
  ended_program = program;
  os::survive_large_files();
  os::survive_lost_readers();
  std::set_terminate(&end_at_once);
}

}  // namespace gleaner

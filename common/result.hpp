// Expected failures as values. `Result<T>` holds a T or an Error; an Error carries a code that
// programs can test and a sentence that a person can act on.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

namespace gleaner {

// Prints the broken invariant and aborts.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace gleaner

// Checks an invariant of our code, in every build: a wrong computation is worse than a stop. A
// peer's input or a file's content must never reach a failing check.
#define GLEANER_CHECK(condition)                               \
  do {                                                         \
    if (!(condition)) [[unlikely]]                             \
      ::gleaner::check_failed(#condition, __FILE__, __LINE__); \
  } while (false)

namespace gleaner {

// Append only: refusals and documentation contain the numbers.
enum class ErrorCode : std::uint16_t {
  kInvalidArgument = 1,  // a flag, key or value that cannot be used
  kInvalidData = 2,      // a malformed data file
  kIo = 3,               // the operating system refused a read, a write or a connection
  kCorrupt = 4,          // stored bytes that fail their checksum or their format
  kProtocol = 5,         // a peer broke the protocol
  kVersion = 6,          // protocol, store or file format of another version
  kInvite = 7,           // the invite is missing, wrong, used up or revoked, or the key is banned
  kIdentity = 8,         // a store that belongs to another run
  kBusy = 9,             // another process holds the store, or a limit is reached
  kNotFound = 10,
  kStaleLease = 11,  // the lease was revoked; its holder must start afresh
  kResources = 12,   // too little memory or disk
  kFault = 13,       // the same work gave a different result before
  kFinished = 14,    // the run is complete
  kShuttingDown = 15,
  kDiskFull = 16,     // no room on the disk; nothing was written, try again when there is
  kStoreUnsure = 17,  // room ran out within a write: the store must be opened again
  kDiverged = 18,     // a round diverged: it is trained again at half the rates
  kReaderLost = 19,   // nobody reads the output any more
};

struct Error {
  ErrorCode code = ErrorCode::kInvalidArgument;
  std::string message;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}  // NOLINT: implicit on purpose

  Result(Error error) : state_(std::move(error)) {}  // NOLINT: implicit on purpose

  [[nodiscard]] bool ok() const { return state_.index() == 0; }

  explicit operator bool() const { return ok(); }

  // Requires ok().
  T& value() & {
    GLEANER_CHECK(ok());
    return std::get<0>(state_);
  }

  const T& value() const& {
    GLEANER_CHECK(ok());
    return std::get<0>(state_);
  }

  T&& value() && {
    GLEANER_CHECK(ok());
    return std::get<0>(std::move(state_));
  }

  T* operator->() { return &value(); }

  const T* operator->() const { return &value(); }

  T& operator*() & { return value(); }

  const T& operator*() const& { return value(); }

  T&& operator*() && { return std::move(*this).value(); }

  // Requires !ok().
  [[nodiscard]] const Error& error() const {
    GLEANER_CHECK(!ok());
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

struct Unit {};

template <>
class [[nodiscard]] Result<void> : public Result<Unit> {
 public:
  Result() : Result<Unit>(Unit{}) {}

  Result(Error error) : Result<Unit>(std::move(error)) {}  // NOLINT: implicit on purpose
};

// Exit status of the programs, documented in every --help; append only.
enum class ExitCode : int {
  kOk = 0,       // done, stopped cleanly, or nothing left to do
  kFailure = 1,  // none of the others
  kUsage = 2,    // a flag, a key or a configuration that cannot be used
  kData = 3,     // a data file that is missing, malformed or does not fit
  kStore = 4,    // the store is damaged, busy, or belongs to another run
  kNetwork = 5,  // cannot listen or connect, or the peer refused for good
};

// The status for an error without further knowledge. kIo and kNotFound become kFailure: only the
// caller knows whether data, store or network failed.
ExitCode exit_code_of(ErrorCode code);

// Name of a code in snake_case, for events.
const char* error_name(ErrorCode code);

// Call in an exception handler of main: prints the exception that has ended `program` to standard
// error, or `no_memory` for std::bad_alloc.
int say_exception(const char* program, const char* no_memory);

// The lines of --help that list the codes.
const char* exit_code_help();

// From now on, exceeding the limit of file sizes (ulimit -f) or writing to a lost reader is a write
// error instead of a signal, and uncaught exceptions are printed as in say_exception(). Call once,
// before threads start.
void end_in_words(const char* program);

}  // namespace gleaner

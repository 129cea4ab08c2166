// Expected failures as values. `Result<T>` holds a T or an Error; an Error carries a code that
// programs can test and a sentence that a person can act on.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "common/check.hpp"

namespace gleaner {

// Append only: the numbers travel in refusals and stand in the documentation.
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
  kStaleLease = 11,  // the lease was revoked; its bearer must start afresh
  kResources = 12,   // memory or disk does not suffice
  kFault = 13,       // a result that differs from what the same work gave before
  kFinished = 14,    // the run is complete
  kShuttingDown = 15,
  kDiskFull = 16,     // no room on the disk; nothing was written, try again when there is
  kStoreUnsure = 17,  // room ran out within a write: the store must be opened again
  kDiverged = 18,     // a round's loss rose too far: it is trained again at lower rates
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

}  // namespace gleaner

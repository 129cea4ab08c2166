// Accounts of a peer's bytes, by their use: bytes of messages with their frames' headers, in one
// direction.
#pragma once

#include <cstddef>
#include <cstdint>

#include "schema/messages.hpp"

namespace gleaner {

struct Traffic {
  std::uint64_t all = 0;
  // Its parts:
  std::uint64_t units = 0;       // of training, and their results; all units of input shards
  std::uint64_t evaluation = 0;  // units of output shards for an evaluation, and their results
  std::uint64_t commits = 0;     // and credit for them
  std::uint64_t shards = 0;      // lent, loaded, moved, offered after a reconnect
  std::uint64_t points = 0;      // that holders of the input layer ask for

  // Introductions, heartbeats, status.
  [[nodiscard]] std::uint64_t rest() const {
    return all - units - evaluation - commits - shards - points;
  }

  void add(const Message& message, std::uint64_t bytes) { add(message.index(), bytes); }

  // Adds by the position of the message's type in Message.
  void add(std::size_t type, std::uint64_t bytes);
  Traffic& operator+=(const Traffic& other);

  friend bool operator==(const Traffic&, const Traffic&) = default;
};

}  // namespace gleaner

#include "schema/messages.hpp"

#include <fmt/format.h>

#include <cstddef>

#include "schema/delivery.hpp"

namespace gleaner {
static_assert(
    [] {
      for (const MessageFacts& facts : kMessageFacts) {
        const bool is_relayed = (facts.routes & (route::kUp | route::kDown)) != 0;
        if (facts.routes == 0 || is_relayed == (facts.at_relay == AtRelay::kNever)) return false;
      }
      return true;
    }(),
    "every message has a route, and a relay does something with those of its volunteers");

Lane lane_of(const Message& message) {
  return lane_of(message.index());
}

Lane lane_of(std::size_t type) {
  return kMessageFacts.at(type).lane;
}

const char* message_name(const Message& message) {
  return message_name(message.index());
}

const char* message_name(std::size_t index) {
  return index < kMessageFacts.size() ? kMessageFacts[index].name : "unknown message";
}

Error misdirected(std::size_t type, std::uint8_t route) {
  const char* receiver = "the master";
  if ((route & route::kDown) != 0) receiver = "a volunteer";
  if ((route & route::kRelayDown) != 0) receiver = "a relay";
  const char* sender = "the master";
  if ((route & route::kUp) != 0) sender = "a volunteer";
  if ((route & route::kRelayUp) != 0) sender = "a relay";
  return {ErrorCode::kProtocol,
          fmt::format("{} takes no {} from {}", receiver, message_name(type), sender)};
}

void Traffic::add(std::size_t type, std::uint64_t bytes) {
  all += bytes;
  const auto account = kMessageFacts.at(type).account;
  if (account != nullptr) this->*account += bytes;
}

Traffic& Traffic::operator+=(const Traffic& other) {
  for (const auto count : {&Traffic::all, &Traffic::units, &Traffic::evaluation, &Traffic::commits,
                           &Traffic::shards, &Traffic::points}) {
    this->*count += other.*count;
  }
  return *this;
}

}  // namespace gleaner

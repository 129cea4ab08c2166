#include "schema/messages.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "schema/delivery.hpp"

namespace gleaner {
static_assert(std::ranges::all_of(kMessageFacts, [](const MessageFacts& facts) {
  const bool is_relayed = (facts.routes & (route::kUp | route::kDown)) != 0;
  return facts.routes != 0 && is_relayed == (facts.at_relay != AtRelay::kNever);
}));

Lane lane_of(const Message& message) {
  return kMessageFacts[message.index()].lane;
}

const char* message_name(const Message& message) {
  return message_name(message.index());
}

const char* message_name(std::size_t index) {
  return index < kMessageFacts.size() ? kMessageFacts[index].name : "unknown message";
}

Error misdirected(std::size_t type) {
  return {ErrorCode::kProtocol, fmt::format("{} is never sent this way", message_name(type))};
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

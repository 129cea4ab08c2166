#include "schema/messages.hpp"

#include <array>
#include <cstddef>
#include <variant>

namespace gleaner {
namespace {

struct Facts {
  const char* name;
  Lane lane;
  std::uint64_t Traffic::*account;  // null: nowhere besides `all`
};

#define GLEANER_MESSAGE_FACTS(type, lane, account) Facts{#type, Lane::lane, account},
// One per type of Message.
constexpr std::array kFacts = {GLEANER_MESSAGES(GLEANER_MESSAGE_FACTS)};
#undef GLEANER_MESSAGE_FACTS

}  // namespace

Lane lane_of(const Message& message) {
  return lane_of(message.index());
}

Lane lane_of(std::size_t type) {
  return kFacts.at(type).lane;
}

const char* message_name(const Message& message) {
  return message_name(message.index());
}

const char* message_name(std::size_t index) {
  return index < kFacts.size() ? kFacts[index].name : "unknown message";
}

void Traffic::add(std::size_t type, std::uint64_t bytes) {
  all += bytes;
  const auto account = kFacts.at(type).account;
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

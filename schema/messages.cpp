#include "schema/messages.hpp"

#include <array>
#include <cstddef>
#include <variant>

namespace gleaner {
namespace {

constexpr std::array<const char*, std::variant_size_v<Message>> kNames = {
    "Hello",      "Welcome",      "Refusal",        "LeaseGrant",   "ChunkRequest",
    "ShardChunk", "ShardReady",   "ReleaseRequest", "HandOver",     "Revoke",
    "TrainUnit",  "UnitResult",   "ShardCommit",    "CommitCredit", "EvalUnit",
    "EvalResult", "Heartbeat",    "Leaving",        "Goodbye",      "ShardOffer",
    "Observe",    "RunStatus",    "InputUnit",      "InputResult",  "PointsRequest",
    "Points",     "AccessAnswer", "AccessRequest",
};

}  // namespace

Lane lane_of(const Message& message) {
  return std::visit(
      []<typename T>(const T&) {
        return is_one_of<T, TrainUnit, UnitResult, EvalUnit, EvalResult, InputUnit, InputResult,
                         PointsRequest, Points, ChunkRequest, CommitCredit, Heartbeat>
                   ? Lane::kUrgent
                   : Lane::kOrdered;
      },
      message);
}

const char* message_name(const Message& message) {
  return message_name(message.index());
}

const char* message_name(std::size_t index) {
  return index < kNames.size() ? kNames[index] : "unknown message";
}

namespace {

// Where a message's bytes are counted besides `all`; null: nowhere.
template <typename T>
constexpr std::uint64_t Traffic::*kind_of() {
  if (is_one_of<T, TrainUnit, UnitResult, InputUnit, InputResult>) return &Traffic::units;
  if (is_one_of<T, EvalUnit, EvalResult>) return &Traffic::evaluation;
  if (is_one_of<T, ShardCommit, CommitCredit>) return &Traffic::commits;
  if (is_one_of<T, PointsRequest, Points>) return &Traffic::points;
  if (is_one_of<T, LeaseGrant, ChunkRequest, ShardChunk, ShardReady, ReleaseRequest, HandOver,
                Revoke, ShardOffer>) {
    return &Traffic::shards;
  }
  return nullptr;
}

template <typename... Types>
constexpr std::array<std::uint64_t Traffic::*, sizeof...(Types)> kinds_of(
    const std::variant<Types...>*) {
  return {kind_of<Types>()...};
}

// One per type of Message.
constexpr auto kKinds = kinds_of(static_cast<const Message*>(nullptr));

}  // namespace

void Traffic::add(std::size_t type, std::uint64_t bytes) {
  all += bytes;
  const auto kind = kKinds.at(type);
  if (kind != nullptr) this->*kind += bytes;
}

Traffic& Traffic::operator+=(const Traffic& other) {
  for (const auto count : {&Traffic::all, &Traffic::units, &Traffic::evaluation, &Traffic::commits,
                           &Traffic::shards, &Traffic::points}) {
    this->*count += other.*count;
  }
  return *this;
}

}  // namespace gleaner

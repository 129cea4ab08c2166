#include "schema/messages.hpp"

#include <array>
#include <cstddef>

#include "schema/is_one_of.hpp"

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

}  // namespace gleaner

#include "schema/messages.hpp"

#include <array>
#include <cstddef>

namespace gleaner {
namespace {

constexpr std::array<const char*, std::variant_size_v<Message>> kNames = {
    "Hello",       "Welcome",        "Refusal",  "LeaseGrant", "ChunkRequest", "ShardChunk",
    "ShardReady",  "ReleaseRequest", "HandOver", "Revoke",     "TrainUnit",    "UnitResult",
    "ShardCommit", "CommitAck",      "EvalUnit", "EvalResult", "Heartbeat",    "Leaving",
    "Goodbye",     "ShardOffer",     "Observe",  "RunStatus",
};

}  // namespace

const char* message_name(const Message& message) {
  return message_name(message.index());
}

const char* message_name(std::size_t index) {
  return index < kNames.size() ? kNames[index] : "unknown message";
}

}  // namespace gleaner

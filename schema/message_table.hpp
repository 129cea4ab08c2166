// The list of messages, from which their names, encoding, decoding and delivery follow. A row has
// the type, its lane, its account in Traffic besides `all` (null: none), its routes, and what a
// relay does with it. A message whose route has no handler for it does not compile: delivery.hpp.
#pragma once

#include <cstdint>

namespace gleaner {

// Routes: who sends a message, and who handles it. A set of them is a sum of bits.
namespace route {
inline constexpr std::uint8_t kUp = 1;       // a volunteer to MasterCore
inline constexpr std::uint8_t kDown = 2;     // the master, or a relay in its place, to a volunteer
inline constexpr std::uint8_t kRelayUp = 4;  // a relay to CoreRunner
inline constexpr std::uint8_t kRelayDown = 8;  // the master to a relay
inline constexpr std::uint8_t kAsk = 16;       // a tool to MasterCore
inline constexpr std::uint8_t kAnswer = 32;    // the master to a tool
inline constexpr std::uint8_t kDoor = 64;      // a connection's first message, for Gate alone
inline constexpr std::uint8_t kAll = kUp | kDown | kRelayUp | kRelayDown;
}  // namespace route

// A relay's part in a message between its volunteers and the master.
enum class AtRelay : std::uint8_t {
  kPass,   // passes it unread
  kFill,   // on the way down: puts activations back that crossed the connection as RelayParts
  kAdd,    // on the way up: takes the gradients out and sends their sum as a RelaySum
  kKeep,   // keeps the examples, so that they cross the connection once
  kStrip,  // on the way down: takes the signed thanks out, which name the relay's key
  kNever,  // is no message between a volunteer and the master
};

// The order is that of the members of Envelope in wire/protocol.capnp, and a position is never used
// again.
//
// An urgent message may overtake ordered messages that were sent earlier. Units, results, and
// requests for shards and commits are urgent, because the run waits for them batch by batch. Shards
// and commits themselves, and every message that changes a holder, keep their order.
// clang-format off
#define GLEANER_MESSAGES(MESSAGE)                                                               \
  MESSAGE(Hello,          kOrdered, nullptr,              kUp,                          kPass)  \
  MESSAGE(Welcome,        kOrdered, nullptr,              kDown,                        kPass)  \
  MESSAGE(Refusal,        kOrdered, nullptr,              kDown | kRelayDown | kAnswer, kPass)  \
  MESSAGE(LeaseGrant,     kOrdered, &Traffic::shards,     kDown,                        kPass)  \
  MESSAGE(ChunkRequest,   kUrgent,  &Traffic::shards,     kUp,                          kPass)  \
  MESSAGE(ShardChunk,     kOrdered, &Traffic::shards,     kDown,                        kPass)  \
  MESSAGE(ShardReady,     kOrdered, &Traffic::shards,     kUp,                          kPass)  \
  MESSAGE(ReleaseRequest, kOrdered, &Traffic::shards,     kDown,                        kPass)  \
  MESSAGE(HandOver,       kOrdered, &Traffic::shards,     kUp,                          kPass)  \
  MESSAGE(Revoke,         kOrdered, &Traffic::shards,     kDown,                        kPass)  \
  MESSAGE(TrainUnit,      kUrgent,  &Traffic::units,      kDown,                        kFill)  \
  MESSAGE(UnitResult,     kUrgent,  &Traffic::units,      kUp,                          kAdd)   \
  MESSAGE(ShardCommit,    kOrdered, &Traffic::commits,    kUp,                          kPass)  \
  MESSAGE(CommitCredit,   kUrgent,  &Traffic::commits,    kDown,                        kPass)  \
  MESSAGE(EvalUnit,       kUrgent,  &Traffic::evaluation, kDown,                        kFill)  \
  MESSAGE(EvalResult,     kUrgent,  &Traffic::evaluation, kUp,                          kPass)  \
  MESSAGE(Heartbeat,      kUrgent,  nullptr,              kAll,                         kPass)  \
  MESSAGE(Leaving,        kOrdered, nullptr,              kUp,                          kPass)  \
  MESSAGE(Goodbye,        kOrdered, nullptr,              kUp | kDown | kRelayDown,     kStrip) \
  MESSAGE(ShardOffer,     kOrdered, &Traffic::shards,     kUp,                          kPass)  \
  MESSAGE(Observe,        kOrdered, nullptr,              kAsk,                         kNever) \
  MESSAGE(RunStatus,      kOrdered, nullptr,              kAnswer,                      kNever) \
  MESSAGE(InputUnit,      kUrgent,  &Traffic::units,      kDown,                        kPass)  \
  MESSAGE(InputResult,    kUrgent,  &Traffic::units,      kUp,                          kPass)  \
  MESSAGE(PointsRequest,  kUrgent,  &Traffic::points,     kUp,                          kKeep)  \
  MESSAGE(Points,         kUrgent,  &Traffic::points,     kDown,                        kKeep)  \
  MESSAGE(AccessAnswer,   kOrdered, nullptr,              kAnswer,                      kNever) \
  MESSAGE(AccessRequest,  kOrdered, nullptr,              kDoor,                        kNever) \
  MESSAGE(RelayHello,     kOrdered, nullptr,              kDoor,                        kNever) \
  MESSAGE(RelayOpen,      kOrdered, nullptr,              kRelayUp,                     kNever) \
  MESSAGE(RelayFrame,     kOrdered, nullptr,              kRelayUp | kRelayDown,        kNever) \
  MESSAGE(RelayPart,      kUrgent,  &Traffic::units,      kRelayDown,                   kNever) \
  MESSAGE(RelayClose,     kOrdered, nullptr,              kRelayUp | kRelayDown,        kNever) \
  MESSAGE(RelaySum,       kUrgent,  &Traffic::units,      kRelayUp,                     kNever) \
  MESSAGE(RelaySplit,     kUrgent,  &Traffic::units,      kRelayDown,                   kNever)
// clang-format on

}  // namespace gleaner

// Every message between master and volunteer, as plain structs; those that training itself takes
// and gives are in common/work/units.hpp. The wire form is Cap'n Proto (wire/protocol.capnp and
// README.md). `codec` converts it and enforces the limits, so a decoded message is well formed:
// sizes agree and numbers are finite. The receiver checks that ids fit the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/access/signed_thanks.hpp"
#include "common/bytes.hpp"
#include "common/ids.hpp"
#include "common/lane.hpp"
#include "common/model/model_config.hpp"
#include "common/model/precision.hpp"
#include "common/model/shard_rows.hpp"
#include "common/result.hpp"
#include "common/work/units.hpp"
#include "schema/tool_messages.hpp"

namespace gleaner {

// The list of messages, from which their names, encoding, decoding and delivery follow. A row has
// the type, its lane, its account in Traffic besides `all` (null: none), its routes, and what a
// relay does with it. A message whose route has no handler for it does not compile: delivery.hpp.

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

// ---- Joining -----------------------------------------------------------------------------------

// First message of a volunteer.
struct Hello {
  std::uint32_t protocol_min = 0;
  std::uint32_t protocol_max = 0;
  std::string build;  // version of the program, for people
  std::string name;
  std::uint32_t cores = 0;         // compute threads that it offers
  std::uint64_t memory_bytes = 0;  // memory that it offers
  std::string simd;                // "scalar", "avx2", "avx512"
  float speed = 0;                 // measured: 10^9 multiply-adds per second, all threads
  std::string invite;              // as text; empty without TLS
  std::uint32_t kept_shards = 0;   // shards kept from an earlier connection, to be offered
  // Start time of the program in milliseconds since 1970, times 2^20, plus a random number below
  // 2^20: distinguishes processes with the same key, and orders them by start time.
  std::uint64_t process = 0;
  std::vector<KernelDigest> kernels;  // at most kKernelDigestsMax; none from older volunteers
  friend bool operator==(const Hello&, const Hello&) = default;
};

// The master's answer to an acceptable Hello.
struct Welcome {
  std::uint32_t protocol = 0;
  std::string build;
  ModelConfig model;
  std::uint32_t heartbeat_ms = 0;      // each side sends a message at least this often
  std::uint32_t silence_ms = 0;        // a peer that is silent longer is taken for dead
  RoundIndex checkpoint = 0;           // the last one; kept shards step back to it
  std::uint64_t test_fingerprint = 0;  // of the test set, for volunteers that cache its examples
  // The first lease epoch of this start of the master. A chunk of an earlier epoch may contain work
  // that was undone since.
  LeaseEpoch first_epoch{};
  std::string run;      // the run's name, for people; empty from older masters
  std::string purpose;  // purpose of the run, in its owner's words; may be empty
  friend bool operator==(const Welcome&, const Welcome&) = default;
};

// The master refuses a request and ends the connection.
struct Refusal {
  ErrorCode code = ErrorCode::kProtocol;
  std::string sentence;  // the reason, and what to do
  bool retry = false;    // whether trying again later can help
  friend bool operator==(const Refusal&, const Refusal&) = default;
};

// ---- Leases and shard state --------------------------------------------------------------------

struct ChunkRequest {
  LeaseRef lease;
  std::uint32_t chunk = 0;
  friend bool operator==(const ChunkRequest&, const ChunkRequest&) = default;
};

// The master wants the shard back. The holder finishes the units already sent, answers with
// HandOver and forgets the shard.
struct ReleaseRequest {
  LeaseRef lease;
  friend bool operator==(const ReleaseRequest&, const ReleaseRequest&) = default;
};

// The shards that a volunteer has stepped back to the checkpoint of the Welcome. The master answers
// each with a LeaseGrant that has `is_held`, or with a Revoke of the old lease.
struct ShardOffer {
  RoundIndex checkpoint = 0;
  std::vector<OfferedShard> shards;  // ascending; may be empty
  friend bool operator==(const ShardOffer&, const ShardOffer&) = default;
};

// The lease is over and the shard's state unwanted: the holder forgets the shard.
struct Revoke {
  LeaseRef lease;
  friend bool operator==(const Revoke&, const Revoke&) = default;
};

// `parts` of the receiver's commits have left the master's memory, stored or discarded: the
// receiver may send as many more (see kCommitPartsInFlight).
struct CommitCredit {
  std::uint32_t parts = 1;
  friend bool operator==(const CommitCredit&, const CommitCredit&) = default;
};

// ---- Input shards that volunteers hold ----------------------------------------------------------

enum class PointSet : std::uint8_t {
  kTraining,  // numbered by their place in the training data
  kTestSet,   // numbered by their place in the evaluation's order
};

// The holder of input shards requests the features of examples (called points here).
struct PointsRequest {
  PointSet set = PointSet::kTraining;
  std::vector<std::uint64_t> points;  // ascending
  friend bool operator==(const PointsRequest&, const PointsRequest&) = default;
};

// Answers a PointsRequest; an answer may take several messages.
struct Points {
  PointSet set = PointSet::kTraining;
  std::vector<std::uint64_t> points;
  std::vector<std::uint32_t>
      offsets;  // points + 1 entries; point i has features [offsets[i], offsets[i+1])
  std::vector<std::uint32_t> features;  // ascending within a point
  std::vector<float> values;            // parallel to features
  // Without a hidden layer: labels of training examples, as output neurons. Otherwise empty.
  Positives labels{{0}, {}};
  friend bool operator==(const Points&, const Points&) = default;
};

// ---- Keeping in touch --------------------------------------------------------------------------

// News of the run in the master's heartbeats.
struct RunNews {
  RoundIndex round = 0;
  RoundIndex rounds = 0;
  std::uint32_t epoch = 0;
  std::uint32_t epochs = 0;
  std::uint32_t volunteers = 0;
  float precision_at_1 = -1;  // of the latest evaluation; negative before the first
  std::string waiting_for;    // why the run waits; empty while it trains
  std::string no_shards;      // why the receiver has none; empty when it has or will get some
  friend bool operator==(const RunNews&, const RunNews&) = default;
};

// Sent by both sides when there is no other message to send.
struct Heartbeat {
  std::uint64_t echo_us = 0;    // the sender's clock; returns in `echoed_us`
  std::uint64_t echoed_us = 0;  // the peer's last echo_us, 0 before the first
  std::optional<RunNews> news;
  std::string paused{};  // why the volunteer computes nothing at present; empty: it works
  friend bool operator==(const Heartbeat&, const Heartbeat&) = default;
};

// The volunteer wants to leave: the master takes its shards back and then sends Goodbye.
struct Leaving {
  std::string reason;
  friend bool operator==(const Leaving&, const Leaving&) = default;
};

// The last message of a connection that ends regularly.
struct Goodbye {
  ErrorCode code = ErrorCode::kShuttingDown;  // kFinished when the run is complete
  std::string sentence;
  std::optional<SignedThanks> thanks{};  // from a master that has a key
  friend bool operator==(const Goodbye&, const Goodbye&) = default;
};

// ---- Relays ------------------------------------------------------------------------------------

// Bytes of the latest RelayParts, and of the gradients of the latest RelaySums, that both ends
// keep.
inline constexpr std::size_t kRelayPartsBytes = std::size_t{64} << 20;
inline constexpr std::size_t kRelaySumsBytes = std::size_t{64} << 20;

// A relay carries the messages of many volunteers over one connection. Each volunteer has a
// channel; the relay numbers channels in ascending order.

// First message of a relay.
struct RelayHello {
  std::uint32_t protocol_min = 0;
  std::uint32_t protocol_max = 0;
  std::string build;  // version of the program, for people
  std::string name;
  std::string invite;  // as text; empty without TLS
  friend bool operator==(const RelayHello&, const RelayHello&) = default;
};

// A volunteer has connected to the relay; its Hello follows.
struct RelayOpen {
  std::uint32_t channel = 0;
  std::string peer;  // its address, seen from the relay
  KeyId key;         // whose possession it has proved to the relay
  friend bool operator==(const RelayOpen&, const RelayOpen&) = default;
};

// A message of a channel, in either direction.
struct RelayFrame {
  std::uint32_t channel = 0;
  Bytes payload;  // an encoded message
  // From the master: numbers of RelayParts. They replace, in order, the activations of a
  // TrainUnit's batches or of an EvalUnit, which are empty in `payload`.
  std::vector<std::uint64_t> parts;
  friend bool operator==(const RelayFrame&, const RelayFrame&) = default;
};

// Activations that several channels need, sent once per connection. Both sides keep the latest
// kRelayPartsBytes of these parts.
struct RelayPart {
  std::uint64_t number = 0;  // ascending by one
  SharedBytes bytes;
};

// Ends a channel. From the relay: the volunteer has gone. From the master: it is sent away.
struct RelayClose {
  std::uint32_t channel = 0;
  std::string reason;
  friend bool operator==(const RelayClose&, const RelayClose&) = default;
};

struct RelayedUnit {
  std::uint32_t channel = 0;
  UnitId unit{};
  friend bool operator==(const RelayedUnit&, const RelayedUnit&) = default;
};

// The sum of the gradients of a batch from several units. Their results were sent before, with
// `is_summed`.
struct RelaySum {
  std::uint64_t number = 0;  // ascending by one
  BatchIndex batch = 0;
  std::vector<RelayedUnit> units;  // at least one
  Bytes gradient;                  // packed, see common/work/quantized_gradient.hpp
  friend bool operator==(const RelaySum&, const RelaySum&) = default;
};

// The master cannot use a sum, since not all of its units count: the relay sends each gradient
// again as a separate sum. The relay keeps the latest kRelaySumsBytes of gradients.
struct RelaySplit {
  std::uint64_t number = 0;
  friend bool operator==(const RelaySplit&, const RelaySplit&) = default;
};

// Bytes exchanged with a peer in one direction, by purpose: messages with their frames' headers.
struct Traffic {
  std::uint64_t all = 0;
  // Its parts:
  std::uint64_t units = 0;       // training units and results; all units of input shards
  std::uint64_t evaluation = 0;  // evaluation units of output shards, and results
  std::uint64_t commits = 0;     // commits and their credit
  std::uint64_t shards = 0;      // shards lent, loaded, moved, or offered after a reconnect
  std::uint64_t points = 0;      // examples that holders of input shards request

  // Introductions, heartbeats, status.
  [[nodiscard]] std::uint64_t rest() const {
    return all - units - evaluation - commits - shards - points;
  }

  // Adds the bytes of a message, whose type is given by its position in Message.
  void add(std::size_t type, std::uint64_t bytes);
  Traffic& operator+=(const Traffic& other);

  friend bool operator==(const Traffic&, const Traffic&) = default;
};

// ---- All of them -------------------------------------------------------------------------------

template <typename, typename... Types>
using VariantOf = std::variant<Types...>;

#define GLEANER_MESSAGE_TYPE(type, ...) , type
using Message = VariantOf<void GLEANER_MESSAGES(GLEANER_MESSAGE_TYPE)>;
#undef GLEANER_MESSAGE_TYPE

Lane lane_of(const Message& message);

// Name of a message's type, for logs and errors.
const char* message_name(const Message& message);
// The name by the type's position in Message; "unknown message" beyond it.
const char* message_name(std::size_t index);

}  // namespace gleaner

// Every message between master and volunteer, as plain structs. The wire form is Cap'n Proto (see
// wire/protocol.capnp and README.md); `codec` converts and enforces the limits, so a decoded
// message is well formed: sizes agree, numbers are finite. Whether ids are in range for the run at
// hand is checked by whoever knows the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
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
#include "schema/tool_messages.hpp"

namespace gleaner {

// ---- Joining -----------------------------------------------------------------------------------

// The digest that a kernel gave in the self-test (common/train/self_test/self_test.hpp).
struct KernelDigest {
  std::string kernel;
  std::uint64_t digest = 0;
  friend bool operator==(const KernelDigest&, const KernelDigest&) = default;
};

// First message of a volunteer.
struct Hello {
  std::uint32_t protocol_min = 0;
  std::uint32_t protocol_max = 0;
  std::string build;  // version of the program, for people
  std::string name;
  std::uint32_t cores = 0;         // compute threads it offers
  std::uint64_t memory_bytes = 0;  // what it is willing to hold
  std::string simd;                // "scalar", "avx2", "avx512"
  float speed = 0;                 // measured: 10^9 multiply-adds a second, all threads
  std::string invite;              // by which it comes, as text; empty in plain text
  std::uint32_t kept_shards = 0;   // it still has from an earlier connection; it will offer them
  // Milliseconds since 1970 when the program started, times 2^20, plus a random number below that:
  // tells two processes with one key apart, and which of them started later.
  std::uint64_t process = 0;
  std::vector<KernelDigest> kernels;  // at most kKernelDigestsMax; none from older volunteers
  friend bool operator==(const Hello&, const Hello&) = default;
};

// The master's answer to an acceptable Hello.
struct Welcome {
  std::uint32_t protocol = 0;
  std::string build;
  ModelConfig model;
  std::uint32_t heartbeat_ms = 0;      // each side sends something at least this often
  std::uint32_t silence_ms = 0;        // a peer silent for longer is taken for dead
  RoundIndex checkpoint = 0;           // the last one; what shards that were kept step back to
  std::uint64_t test_fingerprint = 0;  // of the held-out data, for who caches its points
  // The first lease epoch of this start of the master. Chunks that came under an earlier epoch may
  // be of work that has been undone since.
  LeaseEpoch first_epoch{};
  std::string run;      // its name, for people; empty from older masters
  std::string purpose;  // what the run is for, in its owner's words; may be empty
  friend bool operator==(const Welcome&, const Welcome&) = default;
};

// The master's answer to anything it will not do, and the last message of a connection.
struct Refusal {
  ErrorCode code = ErrorCode::kProtocol;
  std::string sentence;  // says what to do
  bool retry = false;    // whether trying again later can help
  friend bool operator==(const Refusal&, const Refusal&) = default;
};

// ---- Leases and shard state --------------------------------------------------------------------

struct LeaseRef {
  ShardId shard{};
  LeaseEpoch epoch{};
  friend bool operator==(const LeaseRef&, const LeaseRef&) = default;
};

// Lends a shard. The holder fetches chunks 0 .. chunks - 1, in any order, then says ShardReady.
// Chunks below `base_chunks` hold rows as of checkpoint `base_round`; the others are a hand-over's
// rows on top of it. With both, the shard stands before batch `next_batch`.
struct LeaseGrant {
  LeaseRef lease;
  RoundIndex base_round = 0;
  BatchIndex next_batch = 0;
  std::uint32_t base_chunks = 0;
  std::uint32_t chunks = 0;
  std::vector<std::uint32_t> label_counts;  // one a neuron of the shard, for the initial bias
  // The holder has offered the shard as of `base_round`: no chunks, no label counts.
  bool is_held = false;
  friend bool operator==(const LeaseGrant&, const LeaseGrant&) = default;
};

struct ChunkRequest {
  LeaseRef lease;
  std::uint32_t chunk = 0;
  friend bool operator==(const ChunkRequest&, const ChunkRequest&) = default;
};

struct ShardChunk {
  LeaseRef lease;
  std::uint32_t chunk = 0;
  ShardRows rows;
  friend bool operator==(const ShardChunk&, const ShardChunk&) = default;
};

// The holder has every chunk and can train.
struct ShardReady {
  LeaseRef lease;
  friend bool operator==(const ShardReady&, const ShardReady&) = default;
};

// The master wants the shard back: after the units already sent, the holder answers with HandOver
// and forgets the shard.
struct ReleaseRequest {
  LeaseRef lease;
  friend bool operator==(const ReleaseRequest&, const ReleaseRequest&) = default;
};

// A shard where it stands, in parts: the rows touched since its last commit, in full precision.
struct HandOver {
  LeaseRef lease;
  RoundIndex base_round = 0;  // rows that are absent are as of this checkpoint
  BatchIndex next_batch = 0;
  std::uint32_t part = 0;
  std::uint32_t parts = 1;
  ShardRows rows;
  friend bool operator==(const HandOver&, const HandOver&) = default;
};

// A shard that a volunteer still has, by the lease under which it had it.
struct OfferedShard {
  LeaseRef lease;
  ShardDigest digest;  // at the offer's checkpoint
  friend bool operator==(const OfferedShard&, const OfferedShard&) = default;
};

// The shards that a volunteer has stepped back to the checkpoint of the Welcome. The master answers
// each with a LeaseGrant that says it is held, or with a Revoke of the lease it was offered under.
struct ShardOffer {
  RoundIndex checkpoint = 0;
  std::vector<OfferedShard> shards;  // ascending; may be empty
  friend bool operator==(const ShardOffer&, const ShardOffer&) = default;
};

// The lease is over and its state unwanted; the holder forgets the shard.
struct Revoke {
  LeaseRef lease;
  friend bool operator==(const Revoke&, const Revoke&) = default;
};

// ---- Training ----------------------------------------------------------------------------------

// The true labels of a batch's examples, as output neurons of some shards.
struct Positives {
  std::vector<std::uint32_t>
      offsets;  // examples + 1 entries; example i owns [offsets[i], offsets[i+1])
  std::vector<std::uint32_t> neurons;  // ascending within an example
  friend bool operator==(const Positives&, const Positives&) = default;
};

struct UnitBatch {
  BatchIndex batch = 0;
  SharedBytes hidden;     // packed QuantizedActivations, see quantized_batch.hpp
  Positives positives;    // those that fall in the unit's shards
  float output_rate = 0;  // learning rate of the output rows
};

// Train these shards on these consecutive batches, in order.
//
// Without a hidden layer a unit is a *shard-round*: one shard over all batches of a round. The
// holder knows the examples and their labels, so that `batches` has one entry, of the round's first
// batch, without activations and positives. Its rate says how often the rates have been halved.
struct TrainUnit {
  UnitId unit{};
  std::vector<LeaseRef> leases;    // ascending by shard
  std::vector<UnitBatch> batches;  // consecutive, ascending
  bool wants_gradient = true;      // false in a replay whose gradients are already known
  bool may_be_summed = false;      // a relay on the way may add the gradients to those of others
};

struct ShardOutcome {
  ShardId shard{};
  std::uint64_t gradient_digest = 0;  // of the shard's own gradient, sent or not
  std::int64_t loss = 0;     // sum over examples and active neurons, in 2^-20 nats; not negative
  std::uint64_t active = 0;  // active neurons, summed over examples
  friend bool operator==(const ShardOutcome&, const ShardOutcome&) = default;
};

struct BatchResult {
  BatchIndex batch = 0;
  std::vector<ShardOutcome> shards;  // ascending; the unit's shards
  Bytes gradient;  // packed sum of dh over the shards, see quantized_batch.hpp; may be empty
  friend bool operator==(const BatchResult&, const BatchResult&) = default;
};

// The result of a shard-round has an entry in `batches` for the round's first batch and, if there
// are others, one for all of these together, under the number of the second batch.
struct UnitResult {
  UnitId unit{};
  std::vector<BatchResult> batches;
  std::uint64_t compute_us = 0;  // time spent training, for balancing only
  // By a relay: its gradients are left out, and come in a RelaySum.
  bool is_summed = false;
  std::vector<std::uint64_t> checks;  // of the gradients that may be summed, one a batch
  friend bool operator==(const UnitResult&, const UnitResult&) = default;
};

// A shard's sparse update at the end of `round`, in parts of ascending rows. The holder sends it
// unasked after the round's last batch and has already adopted the rounded values.
struct ShardCommit {
  LeaseRef lease;
  RoundIndex round = 0;
  std::uint32_t part = 0;
  std::uint32_t parts = 1;
  SparseUpdate update;
  friend bool operator==(const ShardCommit&, const ShardCommit&) = default;
};

// `parts` of the receiver's commits have left the master's memory, for the store or because
// nobody wants them: as many more may come (see kCommitPartsInFlight).
struct CommitCredit {
  std::uint32_t parts = 1;
  friend bool operator==(const CommitCredit&, const CommitCredit&) = default;
};

// ---- Input shards that volunteers hold ----------------------------------------------------------

// A piece of an input shard's work. Their order is that of the arithmetic on the shard.
struct InputStep {
  enum class Kind : std::uint8_t {
    kForward,   // activations of a training batch
    kBackward,  // update by a batch's dh
    kScore,     // activations of held-out points
  };
  Kind kind = Kind::kForward;
  std::uint64_t index = 0;     // the batch; kScore: the first point in the evaluation's order
  std::uint32_t examples = 0;  // of the batch; kScore: points
  float rate = 0;              // kBackward: learning rate of the input layer
  // kBackward: one a lease of the unit, see input_parts.hpp.
  std::vector<SharedBytes> gradients;
};

// Do these steps, in order, on each of these input shards.
struct InputUnit {
  UnitId unit{};
  std::vector<LeaseRef> leases;  // ascending by shard
  std::vector<InputStep> steps;
};

struct InputResult {
  UnitId unit{};
  // For each step that asks for activations, in order, one a lease of the unit: see
  // input_parts.hpp.
  std::vector<Bytes> activations;
  std::uint64_t compute_us = 0;
  friend bool operator==(const InputResult&, const InputResult&) = default;
};

enum class PointSet : std::uint8_t {
  kTraining,  // points by their place in the training data
  kTestSet,   // points by their place in the evaluation's order
};

// The holder of input shards asks for the features of points.
struct PointsRequest {
  PointSet set = PointSet::kTraining;
  std::vector<std::uint64_t> points;  // ascending
  friend bool operator==(const PointsRequest&, const PointsRequest&) = default;
};

// Points of a request, whose answer may take several of these.
struct Points {
  PointSet set = PointSet::kTraining;
  std::vector<std::uint64_t> points;
  std::vector<std::uint32_t>
      offsets;  // points + 1 entries; point i owns [offsets[i], offsets[i+1])
  std::vector<std::uint32_t> features;  // ascending within a point
  std::vector<float> values;            // parallel to features
  // Without a hidden layer: the output neurons of the labels of training points. Otherwise empty.
  Positives labels{{0}, {}};
  friend bool operator==(const Points&, const Points&) = default;
};

// ---- Evaluation --------------------------------------------------------------------------------

// Score every neuron of these shards exactly and return the best k of each example. Where there is
// no hidden layer, the examples are those of the evaluation's order from `first` on.
struct EvalUnit {
  UnitId unit{};
  std::vector<LeaseRef> leases;  // ascending by shard
  std::uint32_t top_k = 5;
  SharedBytes hidden;  // packed QuantizedActivations
  std::uint64_t first = 0;
};

struct EvalResult {
  UnitId unit{};
  std::uint32_t top_k = 0;         // entries an example; fewer when the shards hold fewer neurons
  std::vector<ScoredNeuron> best;  // examples x top_k: by descending score, then ascending neuron
  std::uint64_t compute_us = 0;
  friend bool operator==(const EvalResult&, const EvalResult&) = default;
};

// ---- Keeping in touch --------------------------------------------------------------------------

// Sent by both sides when they have nothing else to say. The master's carries news of the run.
struct RunNews {
  RoundIndex round = 0;
  RoundIndex rounds = 0;
  std::uint32_t epoch = 0;
  std::uint32_t epochs = 0;
  std::uint32_t volunteers = 0;
  float precision_at_1 = -1;  // of the latest evaluation; negative before the first
  std::string waiting_for;    // what holds the run up; empty while it trains
  std::string no_shards;      // why the receiver has none; empty when it has, or is to get some
  friend bool operator==(const RunNews&, const RunNews&) = default;
};

struct Heartbeat {
  std::uint64_t echo_us = 0;    // the sender's clock; comes back in `echoed_us`
  std::uint64_t echoed_us = 0;  // the peer's last echo_us, 0 before the first
  std::optional<RunNews> news;
  std::string paused{};  // from a volunteer that computes nothing at present: why; empty: it works
  friend bool operator==(const Heartbeat&, const Heartbeat&) = default;
};

// The volunteer wants to go: the master asks for its shards back, then says Goodbye.
struct Leaving {
  std::string reason;
  friend bool operator==(const Leaving&, const Leaving&) = default;
};

// The last message of a connection that ends as it should.
struct Goodbye {
  ErrorCode code = ErrorCode::kShuttingDown;  // kFinished when the run is complete
  std::string sentence;
  std::optional<SignedThanks> thanks{};  // from a master that has a key
  friend bool operator==(const Goodbye&, const Goodbye&) = default;
};

// ---- Relays ------------------------------------------------------------------------------------

// Bytes of the latest RelayParts, and of the gradients of the latest RelaySums, that are kept.
inline constexpr std::size_t kRelayPartsBytes = std::size_t{64} << 20;
inline constexpr std::size_t kRelaySumsBytes = std::size_t{64} << 20;

// A relay carries the messages of many volunteers over one connection. Each of them has a channel,
// whose number the relay chooses, higher than all before.

// First message of a relay.
struct RelayHello {
  std::uint32_t protocol_min = 0;
  std::uint32_t protocol_max = 0;
  std::string build;  // version of the program, for people
  std::string name;
  std::string invite;  // by which it comes, as text; empty in plain text
  friend bool operator==(const RelayHello&, const RelayHello&) = default;
};

// A volunteer has come; its Hello follows.
struct RelayOpen {
  std::uint32_t channel = 0;
  std::string peer;  // its address, as the relay sees it
  KeyId key;         // which it has proved to the relay to have
  friend bool operator==(const RelayOpen&, const RelayOpen&) = default;
};

// A message of a channel, in either direction.
struct RelayFrame {
  std::uint32_t channel = 0;
  Bytes payload;  // an encoded message
  // To the relay: numbers of RelayParts. They belong in place of the activations of a TrainUnit's
  // batches, in order, or of an EvalUnit's, which are empty in `payload`.
  std::vector<std::uint64_t> parts;
  friend bool operator==(const RelayFrame&, const RelayFrame&) = default;
};

// Something that several channels need, which crosses the connection once. Both sides keep the
// latest kRelayPartsBytes of them.
struct RelayPart {
  std::uint64_t number = 0;  // one more than the last
  SharedBytes bytes;
};

// The channel is over: from the relay, the volunteer has gone; from the master, it is sent away.
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

// The sum of the gradients of a batch from several units, whose results have been sent before with
// `is_summed`.
struct RelaySum {
  std::uint64_t number = 0;  // one more than the last
  BatchIndex batch = 0;
  std::vector<RelayedUnit> units;  // at least one
  Bytes gradient;                  // packed, see quantized_batch.hpp
  friend bool operator==(const RelaySum&, const RelaySum&) = default;
};

// The master cannot use a sum, since not all of its units count: the relay sends the gradients
// again, each as a sum of its own. It keeps the latest kRelaySumsBytes of them.
struct RelaySplit {
  std::uint64_t number = 0;
  friend bool operator==(const RelaySplit&, const RelaySplit&) = default;
};

// Accounts of a peer's bytes, by their use: bytes of messages with their frames' headers, in one
// direction.
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

  // Adds the bytes of a message, given by the position of its type in Message.
  void add(std::size_t type, std::uint64_t bytes);
  Traffic& operator+=(const Traffic& other);

  friend bool operator==(const Traffic&, const Traffic&) = default;
};

// ---- All of them -------------------------------------------------------------------------------

// The list of messages: type, lane, account in Traffic besides `all`. Their order is that of the
// members of Envelope in wire/protocol.capnp, and a position is never used again. Names, encoding
// and decoding follow from this list and from the tables of fields in wire/tables.hpp; an assertion
// in wire/codec.cpp names the last message.
//
// An urgent message may overtake ordered messages that were sent earlier. Units, results, and
// requests for shards and commits are urgent, because the run waits for them batch by batch. Shards
// and commits themselves, and every message that changes a holder, keep their order.
// clang-format off
#define GLEANER_MESSAGES(MESSAGE)                         \
  MESSAGE(Hello,          kOrdered, nullptr)              \
  MESSAGE(Welcome,        kOrdered, nullptr)              \
  MESSAGE(Refusal,        kOrdered, nullptr)              \
  MESSAGE(LeaseGrant,     kOrdered, &Traffic::shards)     \
  MESSAGE(ChunkRequest,   kUrgent,  &Traffic::shards)     \
  MESSAGE(ShardChunk,     kOrdered, &Traffic::shards)     \
  MESSAGE(ShardReady,     kOrdered, &Traffic::shards)     \
  MESSAGE(ReleaseRequest, kOrdered, &Traffic::shards)     \
  MESSAGE(HandOver,       kOrdered, &Traffic::shards)     \
  MESSAGE(Revoke,         kOrdered, &Traffic::shards)     \
  MESSAGE(TrainUnit,      kUrgent,  &Traffic::units)      \
  MESSAGE(UnitResult,     kUrgent,  &Traffic::units)      \
  MESSAGE(ShardCommit,    kOrdered, &Traffic::commits)    \
  MESSAGE(CommitCredit,   kUrgent,  &Traffic::commits)    \
  MESSAGE(EvalUnit,       kUrgent,  &Traffic::evaluation) \
  MESSAGE(EvalResult,     kUrgent,  &Traffic::evaluation) \
  MESSAGE(Heartbeat,      kUrgent,  nullptr)              \
  MESSAGE(Leaving,        kOrdered, nullptr)              \
  MESSAGE(Goodbye,        kOrdered, nullptr)              \
  MESSAGE(ShardOffer,     kOrdered, &Traffic::shards)     \
  MESSAGE(Observe,        kOrdered, nullptr)              \
  MESSAGE(RunStatus,      kOrdered, nullptr)              \
  MESSAGE(InputUnit,      kUrgent,  &Traffic::units)      \
  MESSAGE(InputResult,    kUrgent,  &Traffic::units)      \
  MESSAGE(PointsRequest,  kUrgent,  &Traffic::points)     \
  MESSAGE(Points,         kUrgent,  &Traffic::points)     \
  MESSAGE(AccessAnswer,   kOrdered, nullptr)              \
  MESSAGE(AccessRequest,  kOrdered, nullptr)              \
  MESSAGE(RelayHello,     kOrdered, nullptr)              \
  MESSAGE(RelayOpen,      kOrdered, nullptr)              \
  MESSAGE(RelayFrame,     kOrdered, nullptr)              \
  MESSAGE(RelayPart,      kUrgent,  &Traffic::units)      \
  MESSAGE(RelayClose,     kOrdered, nullptr)              \
  MESSAGE(RelaySum,       kUrgent,  &Traffic::units)      \
  MESSAGE(RelaySplit,     kUrgent,  &Traffic::units)
// clang-format on

// The list begins with a comma.
template <typename, typename... Types>
using VariantOf = std::variant<Types...>;

#define GLEANER_MESSAGE_TYPE(type, lane, account) , type
using Message = VariantOf<void GLEANER_MESSAGES(GLEANER_MESSAGE_TYPE)>;
#undef GLEANER_MESSAGE_TYPE

Lane lane_of(const Message& message);
// By the type's position in Message.
Lane lane_of(std::size_t type);

// Name of a message's type, for logs and errors.
const char* message_name(const Message& message);
// The name by the type's position in Message; "unknown message" beyond it.
const char* message_name(std::size_t index);

}  // namespace gleaner

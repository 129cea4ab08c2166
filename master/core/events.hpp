// The events that reach the master's core and the effects that leave it. The core is a function
// (event, now) -> effects. A shell or a simulation performs the effects and reports back with
// events.
//
// Two kinds of effects are queued. Worker tasks run one at a time, in the order in which the core
// issued them: that is the order of the arithmetic on the input layer. Storage tasks do the same
// with one exception: between two steps of a fold, the store stages and settles commits and reads
// rows that were issued after the fold (master/shell/persister.hpp). A round is folded after
// all its commits are staged.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/access/standing.hpp"
#include "common/bytes.hpp"
#include "common/ids.hpp"
#include "common/model/shard_rows.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "common/work/quantized_activations.hpp"
#include "master/core/learning_so_far.hpp"
#include "master/core/reports.hpp"
#include "schema/messages.hpp"

namespace gleaner {

// ---- Work on the input layer and the data ------------------------------------------------------

// Forward pass of a training batch -> ForwardDone.
struct ForwardTask {
  BatchIndex batch = 0;
};

// Add gradients from a volunteer or relay to the sums of their batches -> GradientsAdded. Comes
// before the BackwardTask of each of these batches.
struct AddGradientsTask {
  struct Part {
    std::shared_ptr<const QuantizedActivations> codes;
    SharedBytes packed;                              // of the right size
    std::shared_ptr<std::vector<std::int32_t>> sum;  // examples x H
    std::optional<std::uint64_t> check{};            // what a relay's sum must have
  };

  Volunteer sender;
  std::vector<Part> parts;
};

// Update the input layer by a batch whose gradient is complete -> BackwardDone. Where volunteers
// hold the input layer, the task packs the gradient for them instead.
struct BackwardTask {
  BatchIndex batch = 0;
  float rate = 0;
  std::shared_ptr<const QuantizedActivations> codes;
  std::shared_ptr<const std::vector<std::int32_t>> gradient;  // examples x H
};

// End of a round for the input shards -> InputCommitted.
struct CommitInputTask {
  RoundIndex round = 0;
};

// Forward pass of test examples [begin, end) of the evaluation's order -> EvalForwardDone.
struct EvalForwardTask {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// Quantize activations that volunteers have computed -> ForwardDone, or EvalForwardDone for test
// examples [begin, end).
struct EncodeTask {
  bool is_held_out = false;
  std::uint64_t begin = 0;  // the batch, or the first point
  std::uint64_t end = 0;
  std::shared_ptr<std::vector<float>> activations;  // examples x H; may be changed
};

// Read examples for a volunteer -> PointsRead.
struct ReadPointsTask {
  SessionId session{};
  PointsRequest request;
};

// Merge the shards' best neurons of test examples [begin, end) and add them to the running metrics.
struct EvalScoreTask {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint32_t top_k = 0;
  std::vector<std::vector<ScoredNeuron>> lists;  // one a unit: examples x its own entries
};

// Close the metrics -> EvalFinished.
struct EvalFinishTask {};

using WorkerTask =
    std::variant<ForwardTask, BackwardTask, CommitInputTask, EvalForwardTask, EvalScoreTask,
                 EvalFinishTask, EncodeTask, ReadPointsTask, AddGradientsTask>;

// ---- Work on the store -------------------------------------------------------------------------

// Store a part of a commit -> Staged. The first part replaces all parts of the shard that are
// stored for this round and later rounds: they belong to a commit that was never whole.
struct StageTask {
  SessionId session{};  // whom to answer; none for what the worker commits
  ShardId shard{};
  RoundIndex round = 0;
  std::uint32_t part = 0;
  std::uint32_t parts = 1;
  std::shared_ptr<const SparseUpdate> update;
  LeaseEpoch lease{};        // under which it was sent
  bool checks_rows = false;  // refuse rows that the checkpoint lacks, which a stranger may name
};

// Fold a whole round -> Folded.
struct FoldTask {
  RoundIndex round = 0;
  RoundRecord record;
  std::vector<AccountRecord> accounts;
  std::shared_ptr<const Receipts> receipts{};  // null: none are kept
};

// Read a chunk of a shard for its new holder -> ChunkRead.
struct ReadChunkTask {
  SessionId session{};
  LeaseRef lease;
  std::uint32_t chunk = 0;
  RoundIndex base_round = 0;
  std::uint32_t row_begin = 0;
  std::uint32_t row_end = 0;
};

// Record an evaluation of the last checkpoint -> HistoryRecorded.
struct RecordEvaluationTask {
  Evaluation evaluation;
  std::vector<AccountRecord> accounts;
};

// Record that a staged commit counts, so that the commit survives a restart -> Settled. Comes after
// the StageTasks of all its parts.
struct SettleTask {
  SettledRound settled;
};

using StorageTask =
    std::variant<StageTask, FoldTask, ReadChunkTask, RecordEvaluationTask, SettleTask>;

// ---- Effects -----------------------------------------------------------------------------------

struct Send {
  SessionId session{};
  Message message;
};

// Close the connection after all earlier messages have been sent.
struct CloseSession {
  SessionId session{};
};

// Ask a relay to send the gradients of a sum one by one.
struct SplitSum {
  RelayId relay{};
  std::uint64_t number = 0;  // of the RelaySum
};

// Close a relay's connection and all of its sessions -> RelayGone.
struct CloseRelay {
  RelayId relay{};
  std::string reason;
};

enum class Outcome : std::uint8_t {
  kFinished,    // every round folded and the last one evaluated
  kStopped,     // on request, at a checkpoint
  kAbandoned,   // on request, with a round left unfinished
  kTrainAgain,  // the open rounds are to be trained again, by the next core
  kFailed,      // see the sentence
};

// Volunteers were convicted or banned. What they did unaudited must be trained again without them.
struct FalseWork {
  std::vector<KeyId> by;
};

// A lost relay took gradients with it that no volunteer can compute again within the open rounds.
struct LostGradients {};

// Why the open rounds are trained again. After a divergence, that is at half the rates.
using TrainAgainReason = std::variant<Divergence, FalseWork, LostGradients>;

// The last effect of a run.
struct Done {
  Outcome outcome = Outcome::kFinished;
  Error error{};                             // of kFailed; otherwise only its message counts
  std::optional<TrainAgainReason> reason{};  // of kTrainAgain
};

using Effect =
    std::variant<Send, CloseSession, WorkerTask, StorageTask, Notice, Done, SplitSum, CloseRelay>;
using Effects = std::vector<Effect>;

// ---- Events ------------------------------------------------------------------------------------

struct SessionOpened {
  SessionId session{};
  std::string peer;                // address, for people
  Standing standing;               // as whom it comes; the shell has made sure of it
  std::optional<RelayId> relay{};  // through which it comes
};

// A relay has sent the sum of the gradients of these units. Their sessions may have ended since.
struct RelaySummed {
  RelayId relay{};
  Volunteer sender;          // the relay, which has no session
  std::uint64_t number = 0;  // of the RelaySum
  BatchIndex batch = 0;
  std::vector<std::pair<SessionId, UnitId>> units;
  Bytes gradient;
  std::size_t bytes = 0;  // on the wire, for accounts
};

// The connection to a relay is gone. All of its sessions have been closed before.
struct RelayGone {
  RelayId relay{};
};

struct MessageReceived {
  SessionId session{};
  Message message;
  std::size_t bytes = 0;  // on the wire, for accounts
};

// A message of a Send has left. The core only counts it, and may be told after Done too.
struct MessageSent {
  SessionId session{};
  std::size_t type = 0;   // position of the message's type in Message
  std::size_t bytes = 0;  // on the wire
};

// The connection is gone, or it sent bytes that are no message.
struct SessionClosed {
  SessionId session{};
  std::string reason;
};

struct ForwardDone {
  BatchIndex batch = 0;
  SharedBytes packed;
  std::shared_ptr<const QuantizedActivations> codes;
  double code_length = 0;  // mean_length(*codes)
  Positives positives;     // of all shards
};

struct BackwardDone {
  BatchIndex batch = 0;
  // Where volunteers hold the input layer: the gradient for each input shard, see input_parts.hpp.
  std::vector<SharedBytes> packed;
};

// With an error, the sender packed numbers that no honest volunteer packs, or a relay added
// wrongly. The sums are false from then on.
struct GradientsAdded {
  Volunteer sender;
  std::optional<Error> error;
};

// The examples that were asked for, in parts, or an error when an example does not exist.
struct PointsRead {
  SessionId session{};
  std::size_t asked = 0;
  Result<std::vector<Points>> parts;
};

struct InputCommitted {
  RoundIndex round = 0;

  struct Part {
    ShardId shard{};
    std::uint32_t part = 0;
    std::uint32_t parts = 1;
    std::shared_ptr<const SparseUpdate> update;
  };

  std::vector<Part> parts;
};

struct EvalForwardDone {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  SharedBytes packed;
};

struct EvalChunkScored {
  std::uint64_t begin = 0;
};

struct EvalFinished {
  Evaluation evaluation;
};

struct Staged {
  SessionId session{};
  ShardId shard{};
  RoundIndex round = 0;
  std::uint32_t part = 0;
  std::uint32_t parts = 1;
  LeaseEpoch lease{};
  std::optional<Error> refusal{};  // nothing is stored, since the shard has no such rows

  [[nodiscard]] bool is_last() const { return part + 1 == parts; }
};

struct Folded {
  RoundIndex round = 0;
  std::vector<ShardDigest> digests;  // one a shard, at the new checkpoint
};

struct ChunkRead {
  SessionId session{};
  LeaseRef lease;
  std::uint32_t chunk = 0;
  ShardRows rows;
};

struct HistoryRecorded {};

struct Settled {};

// The store's disk has no room for the next storage task. Nothing was written. The store tries that
// task again from time to time, before all others.
struct StoreFull {
  Error error;
};

// A worker or storage task failed; the run cannot go on in this process.
struct TaskFailed {
  Error error;
};

struct StopRequested {};

// The owner keeps a key out from now on.
struct Banned {
  KeyId key;
  std::string name;
};

// Time has passed; sent a few times a second.
struct Tick {};

using Event =
    std::variant<SessionOpened, MessageReceived, SessionClosed, ForwardDone, BackwardDone,
                 PointsRead, InputCommitted, EvalForwardDone, EvalChunkScored, EvalFinished, Staged,
                 Folded, ChunkRead, HistoryRecorded, StoreFull, TaskFailed, StopRequested, Banned,
                 Tick, MessageSent, GradientsAdded, RelaySummed, RelayGone, Settled>;

namespace detail {

template <typename... Kinds>
bool is_one_of(const Event& event) {
  return (std::holds_alternative<Kinds>(event) || ...);
}

}  // namespace detail

// Whether the core looks at everything after the event. Most events concern one volunteer or one
// shard, which their handler marks; a Tick looks at a few of everything, in turn. So an event's
// cost does not grow with volunteers and shards. All other events are rare.
inline bool concerns_all(const Event& event) {
  return !detail::is_one_of<SessionOpened, MessageReceived, SessionClosed, ForwardDone,
                            BackwardDone, PointsRead, ChunkRead, Staged, GradientsAdded, Tick,
                            RelaySummed, Settled>(event);
}

// Visits up to `most` entries of a map, each once, while `visit` returns true. Begins behind the
// key `last` and wraps around, so that repeated calls come to all entries. Reads `last` before the
// first visit, since a visit may change it.
template <typename Map, typename Visit>
void in_turn(Map& map, const typename Map::key_type& last, std::size_t most, const Visit& visit) {
  auto next = map.upper_bound(last);
  for (std::size_t left = std::min(map.size(), most); left > 0; --left, ++next) {
    if (next == map.end()) next = map.begin();
    if (!visit(*next)) return;
  }
}

// Collects the effects of one event in the order in which they are to be performed, and knows the
// instant at which the event is handled. Every effect of the core goes through the outbox. Used
// from the core only.
class Outbox {
 public:
  // The core handles an event at `now`.
  void set_now(Instant now) { now_ = now; }

  [[nodiscard]] Instant now() const { return now_; }

  void send(SessionId session, Message message) {
    effects_.emplace_back(Send{session, std::move(message)});
  }

  void close(SessionId session) { effects_.emplace_back(CloseSession{session}); }

  void push(WorkerTask task) { effects_.emplace_back(std::move(task)); }

  void push(StorageTask task) { effects_.emplace_back(std::move(task)); }

  void tell(Notice notice) { effects_.emplace_back(std::move(notice)); }

  void log(LogLevel level, std::string kind, std::string message) {
    tell(LogLine{level, std::move(message), std::move(kind)});
  }

  void split(RelayId relay, std::uint64_t number) {
    effects_.emplace_back(SplitSum{relay, number});
  }

  void close(RelayId relay, std::string reason) {
    effects_.emplace_back(CloseRelay{relay, std::move(reason)});
  }

  void push(Done done) { effects_.emplace_back(std::move(done)); }

  // Returns the effects so far and forgets them.
  [[nodiscard]] Effects take() { return std::exchange(effects_, {}); }

 private:
  Instant now_{};
  Effects effects_;
};

}  // namespace gleaner

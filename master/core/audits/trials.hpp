// Strangers that have just come prove themselves before others wait for them: each does a unit
// again whose answer is known. Used from the core only.
//
// The *exercise* is the beginning of a round on one shard: the rows as of the checkpoint, the
// batches, and the answers that the run's fold has confirmed. It is kept in memory, so that it can
// be done at any time and at any pace, and neither a round nor a volunteer waits for it.
// Invariants
// - Who is on trial holds no shard and audits nobody.
// - A false answer convicts nobody: nothing came of it, and under `adaptive` it may be the known
//   one that is false. After kFailuresMax of them there is another exercise.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "master/core/audits/audits.hpp"
#include "master/core/pipeline.hpp"
#include "master/core/placement.hpp"
#include "master/core/sessions.hpp"

namespace gleaner {

class Trials {
 public:
  // All of it outlives the trials.
  Trials(const RunSetup& run, Outbox& outbox, Sessions& sessions, Placement& placement,
         const Audits& audits, const Pipeline& pipeline)
      : run_(run),
        outbox_(outbox),
        sessions_(sessions),
        placement_(placement),
        audits_(audits),
        pipeline_(pipeline) {}

  // -- the exercise
  // An answer that is part of the run.
  void note(const UnitResult& result);
  // The round is folded; its batches are still in the log. Strangers whose work it confirms, as
  // holders or as auditors, have done more than an exercise.
  void folded(RoundIndex round, const Receipts& receipts);
  // A fold leaves the rows of its round behind, so that a draft which it finds unread is dropped.
  void on(ChunkRead& event, bool is_folding);

  // -- newcomers
  void came(SessionId id);
  void session_gone(SessionId id);
  // Time has passed: newcomers may begin, and rows for an exercise may be read.
  void tick(RoundIndex checkpoint, bool is_folding);
  [[nodiscard]] bool is_on_trial(SessionId id, const LeaseRef& lease) const;
  Result<void> receive(SessionId id, const ChunkRequest& request);
  Result<void> receive(SessionId id, const ShardReady& ready);
  // The load that the session owes for its trial, if it does.
  [[nodiscard]] std::optional<OutstandingWork> outstanding(SessionId id) const;
  // Units to be sent; their batches are exercise_batches().
  [[nodiscard]] std::vector<std::pair<SessionId, UnitInFlight>> take_units();

  [[nodiscard]] const std::vector<UnitBatch>& exercise_batches() const {
    return exercise_->batches;
  }

  void answered(SessionId id, SessionState& session, const UnitResult& result);

 private:
  struct Exercise {
    RoundIndex round = 0;
    ShardId shard{};
    std::vector<ShardRows> chunks;
    std::vector<UnitBatch> batches;
    std::vector<ShardOutcome> answers;
    std::uint64_t examples = 0;
    std::uint32_t failures = 0;
  };

  // Rows that are being read for an exercise of a round that is not folded yet.
  struct Draft {
    RoundIndex round = 0;
    ShardId shard{};
    std::vector<ShardRows> chunks;  // so far
    std::vector<ReadChunkTask> reads;
  };

  struct Trial {
    LeaseRef lease;
    OutstandingWork outstanding;
    std::uint32_t chunks_asked = 0;
    bool is_ready = false;
    bool is_sent = false;
  };

  // The shard that a round's exercise would be of: another one for each round.
  [[nodiscard]] ShardId shard_of(RoundIndex round) const;
  // Batches of the round that an exercise has, from its first on.
  [[nodiscard]] BatchIndex end_of(RoundIndex round) const;
  void begin_draft(RoundIndex round);
  void read_on();
  [[nodiscard]] std::optional<Exercise> finish(const Draft& draft) const;
  [[nodiscard]] bool may_begin(SessionId id, const SessionState& session) const;
  void begin(SessionId id, SessionState& session);
  void prove(SessionState& session);

  const RunSetup& run_;
  Outbox& outbox_;
  Sessions& sessions_;
  Placement& placement_;
  const Audits& audits_;
  const Pipeline& pipeline_;

  std::optional<Exercise> exercise_;
  std::optional<Draft> draft_;
  // The outcomes of the shard that shard_of() the batch's round is; none where two differed.
  std::map<BatchIndex, std::optional<ShardOutcome>> answers_;
  bool has_strangers_ = false;  // one has ever come
  std::set<SessionId> newcomers_;
  std::map<SessionId, Trial> trials_;
};

}  // namespace gleaner

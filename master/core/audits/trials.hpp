// Trials of newcomers. A stranger that has just come repeats a unit with a known answer before
// others have to wait for it. Used from the core only.
//
// The *exercise* is the beginning of a round on one shard: the rows as of the checkpoint, the
// batches, and the answers that the run's fold has confirmed. It is kept in memory, so that a
// newcomer can do it at any time and pace. No round and no volunteer waits for it.
// Invariants
// - A volunteer on trial holds no shard and audits nobody.
// - A false answer convicts nobody: it reached no model, and under `adaptive` the known answer
//   itself may be false. After kFailuresMax false answers another exercise replaces it.
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
  // Notes an answer that is part of the run.
  void note(const UnitResult& result);
  // The round is folded, and its batches are still in the log. Strangers whose work it confirms, as
  // holders or as auditors, have proved themselves.
  void folded(RoundIndex round, const Receipts& receipts);
  // Takes a chunk of the draft. A fold removes the rows as of its round: it drops a draft that
  // still lacks some.
  void on(ChunkRead& event, bool is_folding);

  // -- newcomers
  void came(SessionId id);
  void session_gone(SessionId id);
  // Time has passed: begins trials, and reads rows for an exercise.
  void tick(RoundIndex checkpoint, bool is_folding);
  [[nodiscard]] bool is_on_trial(SessionId id, const LeaseRef& lease) const;
  Result<void> receive(SessionId id, const ChunkRequest& request);
  Result<void> receive(SessionId id, const ShardReady& ready);
  // The load that the session owes for its trial, if any.
  [[nodiscard]] std::optional<OutstandingWork> outstanding(SessionId id) const;
  // The units to be sent. Their batches are exercise_batches().
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

  // Rows that are being read for an exercise. Their round is not folded yet.
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

  // The shard of a round's exercise: another shard for each round.
  [[nodiscard]] ShardId shard_of(RoundIndex round) const;
  // The end of the exercise's batches, which begin with the round.
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
  // Outcomes of the batches of exercises, for the shard of their round (shard_of). Nullopt where
  // two answers differed.
  std::map<BatchIndex, std::optional<ShardOutcome>> answers_;
  bool has_strangers_ = false;  // one has ever come
  std::set<SessionId> newcomers_;
  std::map<SessionId, Trial> trials_;
};

}  // namespace gleaner

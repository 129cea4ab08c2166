// Rounds from their first commit to the checkpoint: what is stored, when a round is folded,
// whether it diverged, how far training may go, when the run ends. Used from the core only.
//
// Owns the checkpoint, which commits are stored, what was learned so far, and a stop under way.
// Invariants
// - Stored before visible: a commit counts after `Staged`, and a round is folded when
//   every part of it is stored and no holder still replays it.
// - A commit is made of parts that came under one lease. What came of it counts for nothing until
//   the last part is here, and is replaced by the next holder's. The rounds of a shard become whole
//   in their order.
// - At most two rounds are open, which bounds the replay log; without a hidden layer, as many as
//   RunPlan::rounds_open() says.
// - Whether a round diverged follows from the model and the data alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/time.hpp"
#include "master/core/audits/audits.hpp"
#include "master/core/bag/shard_rounds.hpp"
#include "master/core/core_config.hpp"
#include "master/core/evaluations.hpp"
#include "master/core/lease_table.hpp"
#include "master/core/pipeline.hpp"
#include "master/core/reports.hpp"
#include "master/core/round_meter.hpp"
#include "master/core/sessions.hpp"

namespace gleaner {

class Rounds {
 public:
  // All but `resume` outlive it.
  Rounds(const RunSetup& run, Outbox& outbox, Sessions& sessions, Placement& placement,
         Audits& audits, const Pipeline& pipeline, std::optional<ShardRounds>& shard_rounds,
         Evaluations& evaluations, RoundMeter& meter, ResumePoint& resume);

  // -- state
  [[nodiscard]] RoundIndex checkpoint() const { return checkpoint_; }

  [[nodiscard]] const std::vector<ShardDigest>& digests() const { return digests_; }

  [[nodiscard]] bool is_folding() const { return is_folding_; }

  [[nodiscard]] bool is_stopping() const { return stop_at_.has_value(); }

  [[nodiscard]] const RoundRecord& last_record() const { return last_record_; }

  // The receipts of the round that was folded last.
  [[nodiscard]] const std::shared_ptr<const Receipts>& last_receipts() const {
    return last_receipts_;
  }

  // Since when the store has had no room for its next task, and what it needs, in words.
  [[nodiscard]] const std::optional<Instant>& store_full_since() const { return store_full_since_; }

  [[nodiscard]] const std::string& store_full_reason() const { return store_full_reason_; }

  // Rounds below this may be trained: an evaluation and a stop are barriers.
  [[nodiscard]] RoundIndex open_end() const;

  // The shard's commits from the round on are void.
  void forget_commits(ShardId shard, RoundIndex round);

  // -- commits. An error ends the session.
  Result<void> receive(SessionId id, SessionState& session, ShardCommit& commit);
  void on(InputCommitted& event);
  void on(const Staged& event);

  // -- checkpoints
  // Folds the oldest open round if it is whole; the end of the run if it has diverged.
  [[nodiscard]] std::optional<Done> close();
  void on(Folded& event);
  void begin_evaluation_if_due();
  void on(const EvalFinished& event);
  void on(const HistoryRecorded& event);

  // -- the end of the run, if it comes
  [[nodiscard]] std::optional<Done> on(const StopRequested& event);
  [[nodiscard]] std::optional<Done> on(const StoreFull& event);
  // The store does its tasks (again).
  void store_answered();
  // A stop has taken longer than it may.
  [[nodiscard]] std::optional<Done> stop_overdue() const;
  // Everything is trained and evaluated, or a stop has reached its checkpoint.
  [[nodiscard]] std::optional<Done> complete() const;

 private:
  // A shard's commit for a round that is not folded.
  struct Commit {
    LeaseEpoch lease{};                  // under which its parts come
    Volunteer sender;                    // of these parts
    std::optional<Fingerprint> content;  // once all of them are here
    Receipt receipt;                     // from then on
  };

  // Takes the part as the next one of the lease's commit, or says why it is not. The commit's
  // content if it is the last.
  Result<std::optional<Fingerprint>> take(ShardLease& lease, const SessionState& session,
                                          const ShardCommit& part) const;
  // All of the commit of `own` lease is here. An error when it cannot be the same as the one before
  // and nobody is audited who could have sent a false one.
  Result<void> committed(SessionId id, const SessionState& session, ShardId shard, RoundIndex round,
                         const Fingerprint& content);
  void count_commit(SessionId id, const SessionState& session);
  // Whether every holder has done the oldest open round.
  [[nodiscard]] bool is_done_by_all() const;
  // The receipts of the oldest open round, one per shard. Requires that its audits are confirmed;
  // the receipts are forgotten.
  [[nodiscard]] Receipts take_receipts();
  // A stop does not wait for room on the disk.
  [[nodiscard]] std::optional<Done> stop_if_full() const;
  // Whether the oldest open round can be folded.
  [[nodiscard]] bool is_whole() const;
  // Audits what was excused in the oldest open round. False when nothing was.
  bool audit_after_all();
  [[nodiscard]] std::optional<Divergence> divergence_of(const RoundRecord& record,
                                                        const RoundSums& sums,
                                                        const CodeLengths& lengths) const;
  [[nodiscard]] CodeLengths code_lengths(RoundIndex round) const;
  // The end of the run with the open round unfinished; `why` comes before "it is abandoned".
  [[nodiscard]] Done abandoned(const std::string& why) const;

  const RunSetup& run_;
  Outbox& outbox_;
  Sessions& sessions_;
  Placement& placement_;
  LeaseTable& leases_;
  LeaseTable& shadows_;
  Audits& audits_;
  const Pipeline& pipeline_;
  std::optional<ShardRounds>& shard_rounds_;  // without a hidden layer
  Evaluations& evaluations_;
  RoundMeter& meter_;

  std::map<std::pair<RoundIndex, ShardId>, Commit> commits_;  // volunteers', of rounds not folded
  std::map<RoundIndex, std::uint32_t> stored_;                // shards whose commit is stored whole
  RoundIndex checkpoint_;
  std::vector<ShardDigest> digests_;  // of the shards at checkpoint_; may be empty
  bool is_folding_ = false;
  LearningSoFar learning_;
  RoundRecord last_record_;
  std::shared_ptr<const Receipts> last_receipts_ = std::make_shared<const Receipts>();
  bool has_warned_of_codes_ = false;
  std::optional<Instant> store_full_since_;
  std::string store_full_reason_;
  std::optional<Instant> stop_deadline_;
  std::optional<RoundIndex> stop_at_;  // the checkpoint that a stop waits for
};

}  // namespace gleaner

// Rounds from their first commit to the checkpoint: stored commits, folds, divergence, how far
// training may go, and the end of the run. Used from the core only.
//
// Owns the checkpoint, the stored commits, the learning so far, and a stop under way.
//
// Invariants
// - A commit counts only after `Staged`. A round is folded when all its parts are stored and no
//   holder still replays it.
// - A commit is made of parts under one lease. Its parts count once the last part is here; the next
//   holder's commit replaces an incomplete one. Rounds of a shard become whole in their order.
// - At most two rounds are open, which bounds the replay log. Without a hidden layer,
//   RunPlan::rounds_open() are open.
// - Whether a round diverged follows from the model and the data alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/model/run_plan.hpp"
#include "common/time.hpp"
#include "master/core/audits/audits.hpp"
#include "master/core/bag/shard_rounds.hpp"
#include "master/core/core_config.hpp"
#include "master/core/evaluations.hpp"
#include "master/core/lease_table.hpp"
#include "master/core/pipeline.hpp"
#include "master/core/reports.hpp"
#include "master/core/sessions.hpp"
#include "schema/records.hpp"

namespace gleaner {

// Measurements of the open round and of this process. No decision about the model depends on them.
// Used from the core only.
class RoundMeter {
 public:
  void restart_clock(Instant now) { round_started_ = now; }

  // The next round has been under way since the last one began to close.
  void begin_round(Instant now);

  void batch_applied(std::uint32_t examples) { examples_ += examples; }

  // Bytes of training units and of their results.
  void sent(std::uint64_t bytes);
  void received(std::uint64_t bytes);

  // A volunteer's result covered this number of examples.
  void carried(std::uint64_t examples) { round_unit_examples_ += examples; }

  // One of `shards` was trained on this number of examples, with `volunteers` present.
  void shard_round(std::uint64_t examples, std::uint32_t shards, std::uint32_t volunteers) {
    shard_examples_ += examples;
    examples_ += shard_examples_ / shards;
    shard_examples_ %= shards;
    carried(examples * volunteers / shards);
  }

  [[nodiscard]] RoundRecord record(RoundIndex round, const RunPlan& plan, const RoundSums& sums,
                                   std::uint32_t volunteers, Instant now) const;

  // Since this process started.
  [[nodiscard]] std::uint64_t examples() const { return examples_; }

  [[nodiscard]] std::uint64_t unit_bytes_down() const { return unit_bytes_down_; }

  [[nodiscard]] std::uint64_t unit_bytes_up() const { return unit_bytes_up_; }

 private:
  Instant round_started_{};
  std::uint64_t examples_ = 0;
  // examples x shards that do not yet make an example of all shards
  std::uint64_t shard_examples_ = 0;
  std::uint64_t unit_bytes_down_ = 0, unit_bytes_up_ = 0;
  // In the open round: bytes of units and results, and examples x volunteers they carried.
  std::uint64_t round_bytes_down_ = 0, round_bytes_up_ = 0, round_unit_examples_ = 0;
};

inline void RoundMeter::begin_round(Instant now) {
  round_started_ = now;
  round_bytes_down_ = round_bytes_up_ = round_unit_examples_ = 0;
}

inline void RoundMeter::sent(std::uint64_t bytes) {
  unit_bytes_down_ += bytes;
  round_bytes_down_ += bytes;
}

inline void RoundMeter::received(std::uint64_t bytes) {
  unit_bytes_up_ += bytes;
  round_bytes_up_ += bytes;
}

inline RoundRecord RoundMeter::record(RoundIndex round, const RunPlan& plan, const RoundSums& sums,
                                      std::uint32_t volunteers, Instant now) const {
  RoundRecord record;
  record.checkpoint = round + 1;
  record.batches = plan.round_end(round);
  record.epoch = plan.epochs_done(round + 1);
  record.volunteers = volunteers;
  const auto count = static_cast<double>(sums.examples);
  record.loss = to_nats(sums.loss) / count;
  record.active = static_cast<double>(sums.active) / count;
  record.code_length = sums.code_lengths / count;
  const double seconds = seconds_in(now - round_started_);
  if (seconds > 0) record.examples_per_second = count / seconds;
  if (round_unit_examples_ > 0) {
    const auto carried = static_cast<double>(round_unit_examples_);
    record.bytes_down = static_cast<double>(round_bytes_down_) / carried;
    record.bytes_up = static_cast<double>(round_bytes_up_) / carried;
  }
  return record;
}

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

  // The receipts of the last folded round.
  [[nodiscard]] const std::shared_ptr<const Receipts>& last_receipts() const {
    return last_receipts_;
  }

  // When the store ran out of room, if it has none, and what it needs.
  [[nodiscard]] const std::optional<Instant>& store_full_since() const { return store_full_since_; }

  [[nodiscard]] const std::string& store_full_reason() const { return store_full_reason_; }

  // Rounds below this may be trained. An evaluation or a stop ends the range.
  [[nodiscard]] RoundIndex open_end() const;

  // Forgets the shard's commits from the round on, which are void.
  void forget_commits(ShardId shard, RoundIndex round);

  // -- commits. An error ends the session.
  Result<void> receive(SessionId id, SessionState& session, ShardCommit& commit);
  void on(InputCommitted& event);
  void on(const Staged& event);

  // -- checkpoints
  // Folds the oldest open round if it is whole. Returns the end of the core if the round has
  // diverged.
  [[nodiscard]] std::optional<Done> close();
  void on(Folded& event);
  void begin_evaluation_if_due();
  void on(const EvalFinished& event);
  void on(const HistoryRecorded& event);

  // -- the end of the run
  [[nodiscard]] std::optional<Done> on(const StopRequested& event);
  [[nodiscard]] std::optional<Done> on(const StoreFull& event);
  // The store performs tasks, perhaps after it had no room.
  void store_answered();
  // The end of the run when a stop has taken too long.
  [[nodiscard]] std::optional<Done> stop_overdue() const;
  // The end of the run when everything is trained and evaluated, or when a stop has reached its
  // checkpoint.
  [[nodiscard]] std::optional<Done> complete() const;

 private:
  // A shard's commit for a round that is not folded.
  struct Commit {
    LeaseEpoch lease{};                  // under which its parts arrive
    Volunteer sender;                    // of these parts
    std::optional<Fingerprint> content;  // once all parts are here
    Receipt receipt;                     // once all parts are here
  };

  // Takes the part as the next part of the lease's commit, or returns why it does not fit. Returns
  // the fingerprint of the commit after its last part.
  Result<std::optional<Fingerprint>> take(ShardLease& lease, const SessionState& session,
                                          const ShardCommit& part) const;
  // All parts of the commit under this lease are here. An error when the commit differs from the
  // kept commit and nobody audited sent either.
  Result<void> committed(SessionId id, const SessionState& session, ShardId shard, RoundIndex round,
                         const Fingerprint& content);
  void count_commit(SessionId id, const SessionState& session);
  // Whether every holder has committed the oldest open round.
  [[nodiscard]] bool is_done_by_all() const;
  // Takes the receipts of the oldest open round, one a shard. Requires a clear round.
  [[nodiscard]] Receipts take_receipts();
  // Ends a stop that would have to wait for room on the disk.
  [[nodiscard]] std::optional<Done> stop_if_full() const;
  [[nodiscard]] bool is_whole() const;
  // Audits excused work of the oldest open round. False when there is none.
  bool audit_after_all();
  [[nodiscard]] std::optional<Divergence> divergence_of(const RoundRecord& record,
                                                        const RoundSums& sums,
                                                        const CodeLengths& lengths) const;
  [[nodiscard]] CodeLengths code_lengths(RoundIndex round) const;
  // The end of the run with the open round unfinished. `why` precedes "is abandoned".
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

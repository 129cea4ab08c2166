#include "master/core/rounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "common/model/row_checks.hpp"
#include "master/core/session.hpp"

namespace gleaner {

Rounds::Rounds(const RunSetup& run, Outbox& outbox, Sessions& sessions, Placement& placement,
               Audits& audits, const Pipeline& pipeline, std::optional<ShardRounds>& shard_rounds,
               Evaluations& evaluations, RoundMeter& meter, ResumePoint& resume)
    : run_(run),
      outbox_(outbox),
      sessions_(sessions),
      placement_(placement),
      leases_(placement.leases()),
      shadows_(placement.shadows()),
      audits_(audits),
      pipeline_(pipeline),
      shard_rounds_(shard_rounds),
      evaluations_(evaluations),
      meter_(meter),
      checkpoint_(resume.checkpoint),
      digests_(std::move(resume.digests)),
      learning_(resume.learning) {
  last_record_.batches = run_.plan.round_begin(checkpoint_);
}

RoundIndex Rounds::open_end() const {
  if (learning_.is_past_best(run_.config.patience)) return checkpoint_;
  RoundIndex end = std::min(checkpoint_ + run_.plan.rounds_open(), run_.plan.round_count());
  for (RoundIndex checkpoint = checkpoint_; !shard_rounds_ && checkpoint < end; ++checkpoint) {
    if (evaluations_.owes(checkpoint)) end = std::min(end, checkpoint);
  }
  return stop_at_ ? std::min(end, *stop_at_) : end;
}

// ---- Commits -----------------------------------------------------------------------------------

Result<std::optional<Fingerprint>> Rounds::take(ShardLease& lease, const SessionState& session,
                                                const ShardCommit& part) const {
  const ShardId shard = part.lease.shard;
  if (auto fits = check_update(run_.map, shard, part.update); !fits) {
    return protocol_error("a commit of shard {}: {}", raw(shard), fits.error().message);
  }
  const bool is_next = part.round == lease.next_commit && part.part == lease.parts_arrived &&
                       part.round < run_.plan.round_count() &&
                       (part.part == 0 || part.parts == lease.parts) &&
                       follows(part, part.update, lease.rows_from, run_.map.row_count(shard));
  if (!is_next || lease.next_batch < run_.plan.round_end(part.round)) {
    return protocol_error("a commit of shard {} for round {} that is not due", raw(shard),
                          part.round);
  }
  // Results come before the commit to which they lead. Otherwise the round could be folded while
  // some of its batches are unanswered.
  if (session.has_unit_out(shard, run_.plan.round_end(part.round))) {
    return protocol_error("shard {} committed round {} before its results", raw(shard), part.round);
  }
  lease.parts = part.parts;
  lease.commit_so_far = fingerprint(part, lease.commit_so_far);
  if (++lease.parts_arrived < part.parts) {
    lease.rows_from = part.update.rows.empty() ? 0 : std::uint64_t{part.update.rows.back()} + 1;
    return std::optional<Fingerprint>();
  }
  lease.parts_arrived = 0;
  lease.rows_from = 0;
  lease.outstanding.reset();
  ++lease.next_commit;
  return std::optional(std::exchange(lease.commit_so_far, {}));
}

Result<void> Rounds::receive(SessionId id, SessionState& session, ShardCommit& commit) {
  const ShardId shard = commit.lease.shard;
  ShardLease* const shadow = shadows_.find(commit.lease, id);
  ShardLease* const lease = shadow != nullptr ? shadow : leases_.find(commit.lease, id);
  if (lease == nullptr) {
    outbox_.send(id, CommitCredit{});
    return {};
  }
  const auto whole = take(*lease, session, commit);
  if (!whole) return whole.error();
  audits_.changed(shard);
  if (shadow != nullptr) {
    outbox_.send(id, CommitCredit{});
    if (*whole && shard_rounds_) {
      shard_rounds_->committed_again(shard, **whole);
      shadows_.note_changed(shard);
    } else if (*whole) {
      audits_.committed_again(id, {commit.round, shard}, **whole);
    }
    return {};
  }
  Commit& kept = commits_[{commit.round, shard}];
  // An earlier holder's whole commit stays. An incomplete one is replaced.
  if (kept.content) {
    outbox_.send(id, CommitCredit{});
  } else {
    kept.lease = commit.lease.epoch;
    kept.sender = session.who(id);
    outbox_.push(
        StorageTask(StageTask{id, shard, commit.round, commit.part, commit.parts,
                              std::make_shared<const SparseUpdate>(std::move(commit.update)),
                              commit.lease.epoch, run_.map.is_wide() && !session.is_trusted()}));
  }
  if (!*whole) return {};
  return committed(id, session, shard, commit.round, **whole);
}

Result<void> Rounds::committed(SessionId id, const SessionState& session, ShardId shard,
                               RoundIndex round, const Fingerprint& content) {
  if (shard_rounds_) {
    commits_.at({round, shard}).content = content;
    shard_rounds_->committed(round, shard, content);
    leases_.note_changed(shard);
    return {};
  }
  const bool is_audited = sessions_.is_audited(session);
  if (is_audited) audits_.committed(id, session, {round, shard}, content);
  Commit& kept = commits_.at({round, shard});
  if (!kept.content) {
    const WorkVerdict verdict = is_audited             ? WorkVerdict::kConfirmed
                                : session.is_trusted() ? WorkVerdict::kTrusted
                                                       : WorkVerdict::kUnaudited;
    kept.content = content;
    kept.receipt = {shard, {}, session.standing.identity, session.name(), {}, {}, verdict};
    return {};
  }
  if (*kept.content == content) {
    count_commit(id, session);
    return {};
  }
  if (is_audited || kept.receipt.verdict == WorkVerdict::kConfirmed) {
    audits_.dispute({round, shard}, id);
    return {};
  }
  return Error{ErrorCode::kFault,
               fmt::format("the commit of shard {} for round {} differs from what another holder "
                           "sent, which is kept",
                           raw(shard), round)};
}

void Rounds::count_commit(SessionId id, const SessionState& session) {
  // After its first commit a stranger may hold more shards.
  if (++sessions_.account(session).commits == 1) audits_.heard(id);
}

void Rounds::on(InputCommitted& event) {
  for (InputCommitted::Part& part : event.parts) {
    outbox_.push(StorageTask(StageTask{SessionId{}, part.shard, event.round, part.part, part.parts,
                                       std::move(part.update)}));
  }
}

void Rounds::on(const Staged& event) {
  SessionState* const session = sessions_.find(event.session);
  if (event.refusal) {
    const auto sent = commits_.find({event.round, event.shard});
    if (sent == commits_.end() || sent->second.lease != event.lease) return;
    if (!shard_rounds_) return audits_.convict({sent->second.sender, event.refusal->message, true});
    return shard_rounds_->convict(sent->second.sender, event.refusal->message);
  }
  if (session != nullptr) outbox_.send(event.session, CommitCredit{});
  if (!event.is_last()) return;
  if (raw(event.shard) < leases_.size()) {  // not the worker's
    if (session != nullptr) count_commit(event.session, *session);
    audits_.changed(event.shard);
    if (leases_.at(event.shard).state == LeaseState::kFree) placement_.look_again();
    const auto kept = commits_.find({event.round, event.shard});
    if (kept == commits_.end() || kept->second.lease != event.lease) return;
    leases_.at(event.shard).committed = event.round + 1;
    if (shard_rounds_) {
      commits_.erase(kept);
      shard_rounds_->stored(event.round, event.shard);
      leases_.note_changed(event.shard);
      return;
    }
  }
  ++stored_[event.round];
}

void Rounds::forget_commits(ShardId shard, RoundIndex round) {
  std::erase_if(commits_, [&](const auto& entry) {
    return entry.first.second == shard && entry.first.first >= round;
  });
}

// ---- Checkpoints -------------------------------------------------------------------------------

bool Rounds::is_done_by_all() const {
  for (std::uint32_t s = 0; s < leases_.size(); ++s) {
    // A holder that still replays this round needs its log, even if an earlier holder's commit of
    // the round is stored.
    const ShardLease& lease = leases_.at(ShardId{s});
    if (lease.state != LeaseState::kFree && lease.next_commit <= checkpoint_) return false;
  }
  return true;
}

bool Rounds::is_whole() const {
  if (shard_rounds_) {
    // An evaluation holds up the fold: the `best` model is a copy of the rows that it scored.
    return !evaluations_.owes(checkpoint_) && !evaluations_.current() &&
           evaluations_.is_recorded() && shard_rounds_->has_settled(checkpoint_);
  }
  const auto stored = stored_.find(checkpoint_);
  // The worker commits after its last update.
  return stored != stored_.end() && stored->second == run_.map.shard_count() &&
         pipeline_.applied() >= run_.plan.round_end(checkpoint_) && audits_.is_clear(checkpoint_) &&
         is_done_by_all();
}

bool Rounds::audit_after_all() {
  return shard_rounds_ ? shard_rounds_->audit_after_all(checkpoint_)
                       : audits_.audit_after_all(checkpoint_);
}

std::optional<Done> Rounds::close() {
  if (is_folding_ || checkpoint_ >= run_.plan.round_count() || !is_whole()) return std::nullopt;
  const RoundSums sums =
      shard_rounds_ ? shard_rounds_->sums(checkpoint_) : pipeline_.sums(checkpoint_);
  last_record_ = meter_.record(checkpoint_, run_.plan, sums, sessions_.active(), outbox_.now());
  const CodeLengths lengths = code_lengths(checkpoint_);
  const auto divergence = divergence_of(last_record_, sums, lengths);
  // Audits come before decisions: false work alone can make a round look diverged, or set a loss
  // beside which later rounds look diverged.
  const bool decides = divergence || learning_.is_lower(last_record_.loss);
  if (decides && audit_after_all()) return std::nullopt;
  if (divergence) {
    return Done{Outcome::kTrainAgain,
                {ErrorCode::kDiverged,
                 fmt::format("round {} has diverged: {}", checkpoint_, sentence(*divergence))},
                *divergence};
  }
  if (const auto& weak = lengths.weak_start(); weak && !has_warned_of_codes_) {
    has_warned_of_codes_ = true;
    outbox_.log(
        LogLevel::kWarning, "weak_codes",
        fmt::format(
            "round {} began with quantized activations of a length of {:.3g}, which had been "
            "{:.3g}: the rounds before have ruined the hidden layer, and it may not "
            "recover; begin again with a smaller --input-rate or --staleness",
            checkpoint_, weak->value, weak->before));
  }
  is_folding_ = true;
  last_receipts_ = std::make_shared<const Receipts>(take_receipts());
  outbox_.push(StorageTask(
      FoldTask{checkpoint_, last_record_, sessions_.hand_in_accounts(), last_receipts_}));
  audits_.decided(checkpoint_ + 1);
  meter_.begin_round(outbox_.now());
  return std::nullopt;
}

Receipts Rounds::take_receipts() {
  if (shard_rounds_) return shard_rounds_->fold(checkpoint_);
  Receipts receipts;
  receipts.unaudited = audits_.excused_in(checkpoint_);
  for (std::uint32_t s = 0; s < run_.map.shard_count(); ++s) {
    Receipt& receipt = receipts.shards.emplace_back();
    receipt.shard = ShardId{s};
    receipt.holder_name = "the master";
    receipt.verdict = WorkVerdict::kTrusted;
    const auto known = commits_.find({checkpoint_, receipt.shard});
    if (known == commits_.end()) continue;
    receipt = std::move(known->second.receipt);
    commits_.erase(known);
    if (receipt.verdict != WorkVerdict::kConfirmed) continue;
    std::tie(receipt.auditor, receipt.auditor_name) =
        audits_.auditor_of(checkpoint_, receipt.shard);
    if (receipt.auditor == KeyId{} && receipt.auditor_name.empty()) {
      receipt.verdict = WorkVerdict::kUnaudited;
    }
  }
  return receipts;
}

std::optional<Divergence> Rounds::divergence_of(const RoundRecord& record, const RoundSums& sums,
                                                const CodeLengths& lengths) const {
  if (run_.model.divergence_factor == 0.0F) return std::nullopt;
  double lowest = learning_.lowest_loss;
  // The first round is compared with its own first batch.
  if (lowest < 0) lowest = sums.first_batch_loss;
  if (record.loss > static_cast<double>(run_.model.divergence_factor) * lowest) {
    return Divergence{Divergence::Sign::kLoss, record.loss, lowest};
  }
  return lengths.collapse();
}

CodeLengths Rounds::code_lengths(RoundIndex round) const {
  CodeLengths lengths(learning_.longest_codes);
  if (shard_rounds_) return lengths;
  const BatchIndex end = run_.plan.round_end(round);
  for (BatchIndex batch = run_.plan.round_begin(round); batch < end; ++batch) {
    const BatchRecord& log = pipeline_.at(batch);
    lengths.add(log.examples, log.code_length);
  }
  return lengths;
}

void Rounds::on(Folded& event) {
  is_folding_ = false;
  checkpoint_ = event.round + 1;
  learning_.add_round(last_record_.loss, last_record_.code_length);
  digests_ = std::move(event.digests);
  stored_.erase(event.round);
}

void Rounds::begin_evaluation_if_due() {
  // With a hidden layer a stop leaves the evaluation to the next start.
  const bool is_stopped = stop_at_ && (!shard_rounds_ || checkpoint_ >= *stop_at_);
  if (evaluations_.current() || is_folding_ || is_stopped || !evaluations_.owes(checkpoint_)) {
    return;
  }
  if (!shard_rounds_) return evaluations_.begin(outbox_.now());
  auto scores = shard_rounds_->take_scores(checkpoint_);
  if (scores) evaluations_.begin(outbox_.now(), std::move(*scores));
}

void Rounds::on(const EvalFinished& event) {
  learning_.add_evaluation(checkpoint_, event.evaluation.precision.at_1());
  evaluations_.finished(checkpoint_, event.evaluation);
  outbox_.push(StorageTask(RecordEvaluationTask{event.evaluation, sessions_.hand_in_accounts()}));
  outbox_.tell(Evaluated{checkpoint_, run_.plan.epochs_done(checkpoint_), run_.model.epochs,
                         event.evaluation, seconds_in(outbox_.now() - evaluations_.began())});
}

void Rounds::on(const HistoryRecorded&) {
  evaluations_.recorded();
  meter_.restart_clock(outbox_.now());
}

// ---- The end -----------------------------------------------------------------------------------

Done Rounds::abandoned(const std::string& why) const {
  return {Outcome::kAbandoned,
          {ErrorCode::kShuttingDown,
           fmt::format("{} is abandoned and will be trained again from checkpoint {}", why,
                       checkpoint_)}};
}

std::optional<Done> Rounds::on(const StopRequested&) {
  if (stop_at_) return abandoned(fmt::format("stopped at once: round {}", checkpoint_));
  const RoundIndex begun =
      shard_rounds_ ? checkpoint_ + (shard_rounds_->count_results(checkpoint_) > 0 ? 1 : 0)
                    : pipeline_.rounds_started();
  stop_at_ = std::max(checkpoint_, begun);
  stop_deadline_ = outbox_.now() + run_.config.stop_grace;
  if (auto done = stop_if_full()) return done;
  if (*stop_at_ > checkpoint_) {
    outbox_.log(LogLevel::kInfo, "stopping",
                fmt::format("stopping: finishing round {} first, for at most {} s", *stop_at_ - 1,
                            run_.config.stop_grace.count() / 1000));
  }
  return std::nullopt;
}

std::optional<Done> Rounds::on(const StoreFull& event) {
  if (store_full_since_) return std::nullopt;
  store_full_since_ = outbox_.now();
  store_full_reason_ = event.error.message;
  outbox_.tell(Paused{store_full_reason_});
  return stop_if_full();
}

std::optional<Done> Rounds::stop_if_full() const {
  if (!stop_at_ || *stop_at_ <= checkpoint_ || !store_full_since_) return std::nullopt;
  return abandoned(
      fmt::format("there is no room to finish round {} ({}): it", checkpoint_, store_full_reason_));
}

void Rounds::store_answered() {
  if (!store_full_since_) return;
  outbox_.tell(Resumed{seconds_in(outbox_.now() - *store_full_since_)});
  store_full_since_.reset();
  placement_.restart_outstanding();
}

std::optional<Done> Rounds::stop_overdue() const {
  if (!stop_deadline_ || outbox_.now() < *stop_deadline_) return std::nullopt;
  return abandoned(fmt::format("round {} did not become whole in time: it", checkpoint_));
}

std::optional<Done> Rounds::complete() const {
  if (is_folding_ || !evaluations_.is_recorded()) return std::nullopt;
  const bool is_trained =
      checkpoint_ == run_.plan.round_count() || learning_.is_past_best(run_.config.patience);
  if (is_trained && !evaluations_.owes(checkpoint_)) return Done{Outcome::kFinished};
  if (!stop_at_ || checkpoint_ < *stop_at_) return std::nullopt;
  return Done{Outcome::kStopped,
              {ErrorCode::kShuttingDown,
               fmt::format("stopped at checkpoint {} of {}; the same command resumes there",
                           checkpoint_, run_.plan.round_count())}};
}

}  // namespace gleaner

// What to do next: lend, move, fold, evaluate, finish. Runs after every event and only reads the
// state that events left, so that the order of events within an instant does not matter to it.
#include <fmt/format.h>

#include <algorithm>

#include "master/core/master_core.hpp"

namespace gleaner {

void MasterCore::schedule() {
  if (!is_started_) {
    if (active_sessions() < config_.min_volunteers) {
      if (stop_at_) finish_if_complete();
      return;
    }
    is_started_ = true;
    round_started_ = now_;
  }
  if (!waits_for_rejoin()) lend_free_shards();
  if (has_newcomer_ || unbalanced_rounds_ >= config_.unbalanced_rounds) rebalance();
  close_rounds();
  if (is_done_) return;
  start_evaluation();
  for (WorkerTask& task : pipeline_.advance(rounds_open())) perform(std::move(task));
  if (evaluation_) {
    for (WorkerTask& task : evaluation_->advance()) perform(std::move(task));
  }
  for (auto& [id, session] : sessions_) {
    if (session.phase != SessionPhase::kActive) continue;
    if (input_) issue_input_units(id, session);
    issue_units(id, session);
    if (evaluation_) issue_evaluation(id, session);
  }
  let_leavers_go();
  finish_if_complete();
}

// ---- Leaving ------------------------------------------------------------------------------------

void MasterCore::let_leavers_go() {
  std::vector<SessionId> gone;
  for (const auto& [id, session] : sessions_) {
    if (session.phase == SessionPhase::kLeaving && session.units.empty() &&
        leases_.held_by(id).empty()) {
      gone.push_back(id);
    }
  }
  for (const SessionId id : gone) {
    say(id, Goodbye{ErrorCode::kShuttingDown, "all its shards are handed over"});
    effects_.emplace_back(CloseSession{id});
    drop_session(id, "handed over all its work");
  }
}

// ---- Rounds and evaluations --------------------------------------------------------------------

RoundIndex MasterCore::rounds_open() const {
  if (learning_.is_past_best(config_.patience)) return checkpoint_;
  // At most two rounds are open, which bounds the replay log; an evaluation and a stop are
  // barriers.
  RoundIndex limit = checkpoint_ + 2;
  for (RoundIndex checkpoint = checkpoint_; checkpoint <= checkpoint_ + 1; ++checkpoint) {
    if (is_evaluation_due(checkpoint) && evaluated_checkpoint_ < checkpoint) {
      limit = std::min(limit, checkpoint);
    }
  }
  return stop_at_ ? std::min(limit, *stop_at_) : limit;
}

void MasterCore::close_rounds() {
  if (is_folding_ || checkpoint_ >= plan_.round_count() || !commits_.is_whole(checkpoint_)) return;
  for (std::uint32_t s = 0; s < leases_.size(); ++s) {
    // A holder that still replays this round needs its log, although an earlier holder's commit of
    // it has become durable meanwhile.
    const ShardLease& lease = leases_.at(ShardId{s});
    if (lease.state != LeaseState::kFree && lease.next_commit <= checkpoint_) return;
  }
  last_record_ = round_record(checkpoint_);
  const CodeLengths lengths = code_lengths(checkpoint_);
  if (const auto divergence = divergence_of(last_record_, lengths)) {
    finish({Outcome::kDiverged,
            {ErrorCode::kDiverged,
             fmt::format("round {} has diverged: {}", checkpoint_, sentence(*divergence))},
            divergence});
    return;
  }
  if (const auto& weak = lengths.weak_start(); weak && !has_warned_of_codes_) {
    has_warned_of_codes_ = true;
    remark(Severity::kWarning, "weak_codes",
           fmt::format("round {} began with hidden codes of a length of {:.3g}, which had been "
                       "{:.3g}: the rounds before have ruined the hidden layer, and it may not "
                       "recover; begin again with a smaller --input-rate or --staleness",
                       checkpoint_, weak->value, weak->before));
  }
  is_folding_ = true;
  round_started_ = now_;  // the next round has been under way while this one was closing
  round_bytes_down_ = round_bytes_up_ = round_unit_examples_ = 0;
  effects_.emplace_back(StorageTask(FoldTask{checkpoint_, last_record_, hand_in_accounts()}));
}

std::optional<Divergence> MasterCore::divergence_of(const RoundRecord& record,
                                                    const CodeLengths& lengths) const {
  const BatchIndex first = plan_.round_begin(record.round);
  if (model_.divergence_factor == 0.0F) return std::nullopt;
  double lowest = learning_.lowest_loss;
  // Without a round before it is the model that the first batch met.
  if (lowest < 0) {
    const BatchRecord& batch = pipeline_.at(first);
    lowest = to_nats(batch.loss) / static_cast<double>(batch.examples);
  }
  if (record.loss > static_cast<double>(model_.divergence_factor) * lowest) {
    return Divergence{Divergence::Sign::kLoss, record.loss, lowest};
  }
  return lengths.collapse();
}

CodeLengths MasterCore::code_lengths(RoundIndex round) const {
  CodeLengths lengths(learning_.longest_codes);
  for (BatchIndex batch = plan_.round_begin(round); batch < plan_.round_end(round); ++batch) {
    const BatchRecord& log = pipeline_.at(batch);
    lengths.add(log.examples, log.code_length);
  }
  return lengths;
}

bool MasterCore::is_evaluation_due(RoundIndex checkpoint) const {
  if (config_.test_points == 0 || checkpoint == 0) return false;
  if (checkpoint == plan_.round_count()) return true;
  if (config_.evaluate_every_epochs == 0 || checkpoint > plan_.round_count()) return false;
  const std::uint32_t every = config_.evaluate_every_epochs;
  return plan_.epochs_done(checkpoint) / every > plan_.epochs_done(checkpoint - 1) / every;
}

void MasterCore::start_evaluation() {
  if (evaluation_ || is_folding_ || stop_at_ || !is_evaluation_due(checkpoint_) ||
      evaluated_checkpoint_ >= checkpoint_) {
    return;
  }
  const std::uint64_t points = config_.evaluate_sample == 0
                                   ? config_.test_points
                                   : std::min(config_.evaluate_sample, config_.test_points);
  evaluation_.emplace(points, config_.evaluate_chunk, config_.evaluate_chunks_in_flight,
                      map_.output_shards(), config_.top_k);
}

void MasterCore::finish_if_complete() {
  if (is_done_ || is_folding_ || !is_evaluation_recorded_) return;
  const bool is_trained =
      checkpoint_ == plan_.round_count() || learning_.is_past_best(config_.patience);
  const bool needs_evaluation =
      is_evaluation_due(checkpoint_) && evaluated_checkpoint_ < checkpoint_;
  if (is_trained && !needs_evaluation) {
    finish({Outcome::kFinished});
  } else if (stop_at_ && checkpoint_ >= *stop_at_) {
    finish({Outcome::kStopped,
            {ErrorCode::kShuttingDown,
             fmt::format("stopped at checkpoint {} of {}; the same command resumes there",
                         checkpoint_, plan_.round_count())}});
  }
}

}  // namespace gleaner

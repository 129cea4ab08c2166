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
  start_evaluation();
  for (WorkerTask& task : pipeline_.advance(rounds_open())) effects_.emplace_back(std::move(task));
  if (evaluation_) {
    for (WorkerTask& task : evaluation_->advance()) effects_.emplace_back(std::move(task));
  }
  for (auto& [id, session] : sessions_) {
    if (session.phase != SessionPhase::kActive) continue;
    issue_units(id, session);
    if (evaluation_) issue_evaluation(id, session);
  }
  let_leavers_go();
  finish_if_complete();
}

// ---- Placement ---------------------------------------------------------------------------------

double MasterCore::expected_speed(const SessionState& session) const {
  if (session.speed > 0) return session.speed;
  // One that has not trained yet measured itself, in another unit; those that did both translate.
  double trained = 0;
  double claimed = 0;
  for (const auto& [id, other] : sessions_) {
    if (other.phase != SessionPhase::kActive || other.speed <= 0) continue;
    trained += other.speed;
    claimed += double{other.hello.speed};
  }
  const double speed = double{session.hello.speed};
  return claimed > 0 ? speed * trained / claimed : speed;
}

std::vector<Holder> MasterCore::holders() const {
  std::vector<Holder> holders;
  for (const auto& [id, session] : sessions_) {
    if (session.phase != SessionPhase::kActive || session.awaits_offer) continue;
    Holder holder;
    holder.session = id;
    holder.speed = expected_speed(session);
    holder.shards = static_cast<std::uint32_t>(leases_.held_by(id).size());
    holder.capacity = config_.shard_bytes == 0
                          ? leases_.size()
                          : static_cast<std::uint32_t>(std::min<std::uint64_t>(
                                leases_.size(), session.hello.memory_bytes / config_.shard_bytes));
    holders.push_back(holder);
  }
  return holders;
}

void MasterCore::lend_free_shards() {
  for (const ShardId shard : leases_.in_state(LeaseState::kFree)) {
    const ShardLease& free = leases_.at(shard);
    // A hand-over continues from a commit; the commit must be durable before it can be fetched.
    if (free.handed_over && free.handed_over->base_round > free.committed) continue;
    const std::vector<Holder> candidates = holders();
    const std::optional<std::size_t> receiver = next_receiver(candidates, leases_.size());
    if (!receiver) return;
    if (free.handed_over && free.handed_over->base_round < free.committed) {
      leases_.at(shard).handed_over.reset();
    }
    const SessionId id = candidates[*receiver].session;
    SessionState& session = sessions_.at(id);
    const BatchIndex next_batch =
        free.handed_over ? free.handed_over->next_batch : plan_.round_begin(free.committed);
    LeaseGrant grant;
    grant.lease = leases_.grant(shard, id, free.committed, next_batch, now_);
    grant.base_round = free.base_round;
    grant.next_batch = next_batch;
    const std::uint32_t rows = map_.row_count(shard);
    grant.base_chunks =
        grant.base_round == 0 ? 0 : (rows + config_.rows_per_chunk - 1) / config_.rows_per_chunk;
    grant.chunks =
        grant.base_chunks +
        (free.handed_over ? static_cast<std::uint32_t>(free.handed_over->parts.size()) : 0);
    const NeuronRange range = map_.neurons(shard);
    grant.label_counts.reserve(range.size());
    for (std::uint32_t neuron = range.begin; neuron < range.end; ++neuron) {
      grant.label_counts.push_back(config_.label_counts[map_.label_of_neuron(neuron)]);
    }
    begin_debt(session);
    say(id, std::move(grant));
  }
}

void MasterCore::weigh_balance() {
  const std::vector<Holder> present = holders();
  const bool is_off = is_unbalanced(present, leases_.size(), config_.hysteresis);
  unbalanced_rounds_ = is_off ? unbalanced_rounds_ + 1 : 0;
  explain_shares(present);
}

void MasterCore::explain_shares(std::span<const Holder> holders) {
  const std::vector<std::uint32_t> shares = fair_shares(holders, leases_.size());
  double total = 0;
  for (const Holder& holder : holders) total += holder.speed;
  for (std::size_t i = 0; i < holders.size(); ++i) {
    SessionState& session = sessions_.at(holders[i].session);
    if (shares[i] > 0 || holders[i].shards > 0) {
      session.no_shards.clear();
      continue;
    }
    if (!session.no_shards.empty()) continue;
    if (holders[i].capacity == 0) {
      session.no_shards = "its memory is too small for a shard";
    } else {
      session.no_shards = fmt::format(
          "others are done sooner: it does {:.1f} % of what all do together, and one of {} shards "
          "is {:.1f} %",
          100 * holders[i].speed / std::max(total, 1e-9), leases_.size(), 100.0 / leases_.size());
    }
    remark(Severity::kInfo, "no_shards",
           fmt::format("{} gets no shards: {}", session.name(), session.no_shards));
  }
}

bool MasterCore::is_between_rounds() const {
  const BatchIndex frontier = pipeline_.frontier();
  if (!plan_.is_round_end(frontier)) return false;
  for (std::uint32_t s = 0; s < leases_.size(); ++s) {
    const ShardLease& lease = leases_.at(ShardId{s});
    if (lease.state != LeaseState::kFree && lease.next_batch != frontier) return false;
  }
  return true;
}

bool MasterCore::is_move_worth_while(const std::vector<Holder>& candidates) const {
  if (!last_loss_) return true;
  // Expect the next volunteer to vanish after as long as none has: until then a move must bring in
  // the time it takes. Where they vanish faster, newcomers get the shards of the vanished instead.
  const double calm_us = static_cast<double>((now_ - *last_loss_).count());
  return calm_us * gain_of_fair_shares(candidates, leases_.size()) >=
         static_cast<double>(loading_time_.count());
}

void MasterCore::rebalance() {
  // Between two rounds, when a hand-over has nothing to carry: everything is in the commit.
  if (!is_between_rounds()) return;
  // One wave of moves at a time: what is on its way will change the picture.
  if (!leases_.in_state(LeaseState::kReleasing).empty() ||
      !leases_.in_state(LeaseState::kLoading).empty() ||
      !leases_.in_state(LeaseState::kFree).empty()) {
    return;
  }
  const std::vector<Holder> candidates = holders();
  if (!is_move_worth_while(candidates)) return;
  has_newcomer_ = false;
  unbalanced_rounds_ = 0;
  for (const Move& move : plan_moves(candidates, leases_.size())) {
    const std::vector<ShardId> held = leases_.held_by(move.source);
    begin_debt(sessions_.at(move.source));
    for (std::uint32_t i = 0; i < move.shards; ++i) {
      const ShardId shard = held[held.size() - 1 - i];
      say(move.source, ReleaseRequest{{shard, leases_.at(shard).epoch}});
      leases_.set_state(shard, LeaseState::kReleasing, now_);
    }
    remark(
        Severity::kInfo, "moving",
        fmt::format("{} shards move away from {}", move.shards, sessions_.at(move.source).name()));
  }
}

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
  is_folding_ = true;
  last_record_ = round_record(checkpoint_);
  round_started_ = now_;  // the next round has been under way while this one was closing
  round_bytes_down_ = round_bytes_up_ = round_unit_examples_ = 0;
  effects_.emplace_back(StorageTask(FoldTask{checkpoint_, last_record_, accounts()}));
}

bool MasterCore::is_evaluation_due(RoundIndex checkpoint) const {
  if (config_.test_points == 0 || checkpoint == 0) return false;
  if (checkpoint == plan_.round_count()) return true;
  if (config_.evaluate_every_epochs == 0 || checkpoint > plan_.round_count()) return false;
  const RoundIndex epoch_rounds = plan_.rounds_per_epoch() * config_.evaluate_every_epochs;
  return checkpoint % epoch_rounds == 0;
}

void MasterCore::start_evaluation() {
  if (evaluation_ || is_folding_ || stop_at_ || !is_evaluation_due(checkpoint_) ||
      evaluated_checkpoint_ >= checkpoint_) {
    return;
  }
  const bool all = config_.evaluate_sample == 0 || checkpoint_ == plan_.round_count();
  const std::uint64_t points =
      all ? config_.test_points : std::min(config_.evaluate_sample, config_.test_points);
  evaluation_.emplace(points, config_.evaluate_chunk, config_.evaluate_chunks_in_flight,
                      leases_.size(), config_.top_k);
}

void MasterCore::finish_if_complete() {
  if (is_done_ || is_folding_ || !is_evaluation_recorded_) return;
  const bool is_trained = checkpoint_ == plan_.round_count();
  const bool needs_evaluation =
      is_evaluation_due(checkpoint_) && evaluated_checkpoint_ < checkpoint_;
  if (is_trained && !needs_evaluation) {
    finish(Outcome::kFinished);
  } else if (stop_at_ && checkpoint_ >= *stop_at_) {
    finish(Outcome::kStopped,
           {ErrorCode::kShuttingDown,
            fmt::format("stopped at checkpoint {} of {}; the same command resumes there",
                        checkpoint_, plan_.round_count())});
  }
}

}  // namespace gleaner

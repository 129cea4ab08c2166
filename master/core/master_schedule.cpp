// What to do next: lend, move, issue, fold, evaluate. Runs after every event and only reads the
// state that events left, so that the order of events within an instant does not matter to it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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
  lend_free_shards();
  if (wants_rebalance_) rebalance();
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

std::vector<Holder> MasterCore::holders() const {
  const bool all_measured = std::all_of(sessions_.begin(), sessions_.end(), [](const auto& entry) {
    return entry.second.phase != SessionPhase::kActive || entry.second.speed > 0;
  });
  std::vector<Holder> holders;
  for (const auto& [id, session] : sessions_) {
    if (session.phase != SessionPhase::kActive) continue;
    Holder holder;
    holder.session = id;
    // Before everyone has trained, the speeds they measured themselves are the common unit.
    holder.speed = all_measured ? session.speed : double{session.hello.speed};
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
    grant.lease = leases_.grant(shard, id, next_batch, now_);
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
    if (session.units.empty()) session.last_progress = now_;
    say(id, std::move(grant));
  }
}

void MasterCore::rebalance() {
  // One wave of moves at a time: what is on its way will change the picture.
  if (!leases_.in_state(LeaseState::kReleasing).empty() ||
      !leases_.in_state(LeaseState::kLoading).empty() ||
      !leases_.in_state(LeaseState::kFree).empty()) {
    return;
  }
  wants_rebalance_ = false;
  for (const Move& move : plan_moves(holders(), leases_.size(), config_.hysteresis)) {
    const std::vector<ShardId> held = leases_.held_by(move.source);
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

// ---- Units -------------------------------------------------------------------------------------

std::uint32_t MasterCore::unit_batches(const SessionState& session, BatchIndex first,
                                       std::size_t shards) const {
  if (session.speed <= 0) return 1;
  const double batch_us =
      static_cast<double>(pipeline_.at(first).examples * shards) * 1e6 / session.speed;
  const double fitting = static_cast<double>(config_.unit_target.count()) / batch_us;
  return static_cast<std::uint32_t>(
      std::clamp(fitting, 1.0, static_cast<double>(config_.batches_per_unit_max)));
}

UnitInFlight MasterCore::next_unit(SessionId id, const SessionState& session) const {
  UnitInFlight unit;
  std::vector<ShardId> behind;
  for (const ShardId shard : leases_.held_by(id)) {
    const ShardLease& lease = leases_.at(shard);
    if (lease.state != LeaseState::kReady || lease.next_batch >= pipeline_.frontier()) continue;
    if (!behind.empty() && lease.next_batch > leases_.at(behind.front()).next_batch) continue;
    if (!behind.empty() && lease.next_batch < leases_.at(behind.front()).next_batch) behind.clear();
    behind.push_back(shard);
  }
  if (behind.empty()) return unit;
  // The shards furthest behind go first; a replay whose gradients are known is a unit of its own.
  unit.first = leases_.at(behind.front()).next_batch;
  unit.wants_gradient = !pipeline_.is_covered(unit.first, behind.front());
  for (const ShardId shard : behind) {
    if (pipeline_.is_covered(unit.first, shard) != unit.wants_gradient) {
      unit.leases.push_back({shard, leases_.at(shard).epoch});
    }
  }
  const BatchIndex end = std::min<BatchIndex>(
      pipeline_.frontier(), unit.first + unit_batches(session, unit.first, unit.leases.size()));
  BatchIndex next = unit.first + 1;
  while (next < end && std::all_of(unit.leases.begin(), unit.leases.end(), [&](const LeaseRef& l) {
           return pipeline_.is_covered(next, l.shard) != unit.wants_gradient;
         })) {
    ++next;
  }
  unit.batches = static_cast<std::uint32_t>(next - unit.first);
  return unit;
}

bool MasterCore::issue_unit(SessionId id, SessionState& session) {
  UnitInFlight unit = next_unit(id, session);
  if (unit.batches == 0) return false;
  TrainUnit message;
  message.leases = unit.leases;
  message.wants_gradient = unit.wants_gradient;
  for (std::uint32_t i = 0; i < unit.batches; ++i) {
    const BatchIndex batch = unit.first + i;
    message.batches.push_back(
        {batch, pipeline_.at(batch).packed, pipeline_.positives_in(batch, unit.leases)});
  }
  for (const LeaseRef& lease : unit.leases) {
    leases_.at(lease.shard).next_batch = unit.first + unit.batches;
  }
  session.batches_in_flight += unit.batches;
  send_unit(id, session, std::move(unit), std::move(message));
  return true;
}

void MasterCore::send_unit(SessionId id, SessionState& session, UnitInFlight unit,
                           Message message) {
  const UnitId unit_id{++last_unit_};
  if (auto* train = std::get_if<TrainUnit>(&message)) train->unit = unit_id;
  if (auto* evaluate = std::get_if<EvalUnit>(&message)) evaluate->unit = unit_id;
  if (session.units.empty()) session.last_progress = now_;
  session.units.emplace(unit_id, std::move(unit));
  say(id, std::move(message));
}

void MasterCore::issue_units(SessionId id, SessionState& session) {
  // Enough to keep a volunteer busy over a round trip; the lag bounds live batches anyway, so this
  // only limits replays.
  std::uint32_t limit = std::max(model_.staleness + 1, 2 * config_.batches_per_unit_max);
  const BatchIndex frontier = pipeline_.frontier();
  if (session.speed > 0 && session.round_trip_us > 0 && frontier > pipeline_.applied()) {
    const double batch_us =
        model_.batch_examples * 1e6 *
        static_cast<double>(std::max<std::size_t>(1, leases_.held_by(id).size())) / session.speed;
    const double over_round_trip = static_cast<double>(session.round_trip_us) / batch_us;
    limit +=
        static_cast<std::uint32_t>(std::min(over_round_trip, 2.0 * config_.batches_per_unit_max));
  }
  while (session.batches_in_flight < limit && issue_unit(id, session)) {
  }
}

void MasterCore::issue_evaluation(SessionId id, SessionState& session) {
  std::vector<ShardId> ready;
  for (const ShardId shard : leases_.held_by(id)) {
    const ShardLease& lease = leases_.at(shard);
    // A shard that still replays towards the checkpoint would answer with older weights.
    if (lease.state == LeaseState::kReady && lease.next_batch == plan_.round_begin(checkpoint_)) {
      ready.push_back(shard);
    }
  }
  if (ready.empty()) return;
  while (true) {
    const EvaluationRun::Assignment assignment = evaluation_->next_assignment(ready);
    if (assignment.shards.empty()) return;
    UnitInFlight unit;
    unit.kind = UnitInFlight::Kind::kEvaluate;
    unit.eval_begin = assignment.begin;
    EvalUnit message;
    message.top_k = config_.top_k;
    message.hidden = assignment.packed;
    for (const ShardId shard : assignment.shards) {
      message.leases.push_back({shard, leases_.at(shard).epoch});
    }
    unit.leases = message.leases;
    evaluation_->assigned(assignment.begin, assignment.shards);
    send_unit(id, session, std::move(unit), std::move(message));
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
  round_bytes_down_ = round_bytes_up_ = round_unit_examples_ = 0;
  effects_.emplace_back(StorageTask(FoldTask{checkpoint_, last_record_, accounts()}));
}

RoundRecord MasterCore::round_record(RoundIndex round) const {
  RoundRecord record;
  record.round = round;
  record.batches = plan_.round_end(round);
  record.epoch = (round + 1) / plan_.rounds_per_epoch();
  record.volunteers = active_sessions();
  std::uint64_t examples = 0;
  std::int64_t loss = 0;
  std::uint64_t active = 0;
  for (BatchIndex batch = plan_.round_begin(round); batch < plan_.round_end(round); ++batch) {
    const BatchRecord& log = pipeline_.at(batch);
    examples += log.examples;
    loss += log.loss;
    active += log.active;
  }
  const auto count = static_cast<double>(examples);
  record.loss = static_cast<double>(loss) / 1048576.0 / count;
  record.active = static_cast<double>(active) / count;
  const double seconds = static_cast<double>((now_ - round_started_).count()) / 1e6;
  if (seconds > 0) record.examples_per_second = count / seconds;
  if (round_unit_examples_ > 0) {
    record.bytes_down =
        static_cast<double>(round_bytes_down_) / static_cast<double>(round_unit_examples_);
    record.bytes_up =
        static_cast<double>(round_bytes_up_) / static_cast<double>(round_unit_examples_);
  }
  return record;
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

// ---- What is going on --------------------------------------------------------------------------

std::string MasterCore::waiting_for() const {
  if (checkpoint_ == plan_.round_count() && !evaluation_) return "";
  const std::uint32_t active = active_sessions();
  if (active == 0) return "a volunteer: none is connected";
  if (!is_started_) {
    return fmt::format("volunteers: {} of the {} it starts with are here", active,
                       config_.min_volunteers);
  }
  const std::size_t free = leases_.in_state(LeaseState::kFree).size();
  if (free > 0) return fmt::format("a volunteer with memory for {} more shards", free);
  for (const LeaseState state : {LeaseState::kLoading, LeaseState::kReleasing}) {
    const std::vector<ShardId> moving = leases_.in_state(state);
    if (moving.empty()) continue;
    const auto holder = sessions_.find(leases_.at(moving.front()).holder);
    return fmt::format("{} to {} {} shards",
                       holder == sessions_.end() ? "?" : holder->second.name(),
                       state == LeaseState::kLoading ? "load" : "hand over", moving.size());
  }
  return "";
}

CoreSnapshot MasterCore::snapshot() const {
  CoreSnapshot view;
  using Phase = CoreSnapshot::Phase;
  view.waiting_for = waiting_for();
  view.phase = is_done_                                 ? Phase::kDone
               : stop_at_                               ? Phase::kStopping
               : evaluation_                            ? Phase::kEvaluating
               : !is_started_ || active_sessions() == 0 ? Phase::kWaiting
                                                        : Phase::kTraining;
  view.round = checkpoint_;
  view.rounds = plan_.round_count();
  view.batch = pipeline_.applied();
  view.batches = plan_.batch_count();
  view.epoch =
      std::min(model_.epochs, static_cast<std::uint32_t>(view.batch / plan_.batches_per_epoch()));
  view.epochs = model_.epochs;
  view.staleness = model_.staleness;
  view.examples = examples_;
  view.unit_bytes_down = unit_bytes_down_;
  view.unit_bytes_up = unit_bytes_up_;
  view.loss = last_record_.loss;
  view.active = last_record_.active;
  view.last_evaluation = last_evaluation_;
  view.shards = leases_.size();
  view.shards_ready = static_cast<std::uint32_t>(leases_.in_state(LeaseState::kReady).size());
  for (const auto& [id, session] : sessions_) {
    if (session.phase == SessionPhase::kIntroducing) continue;
    view.volunteers.push_back({session.name(), session.peer, session.hello.cores,
                               static_cast<std::uint32_t>(leases_.held_by(id).size()),
                               session.speed, session.round_trip_us});
  }
  return view;
}

}  // namespace gleaner

#include "master/core/master_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gleaner {

MasterCore::MasterCore(const ModelConfig& model, CoreConfig config, ResumePoint resume)
    : model_(model),
      config_(std::move(config)),
      plan_(model_, std::move(resume.rate_cuts)),
      map_(model_),
      leases_(config_.lends_input ? map_.shard_count() : map_.output_shards(), resume.checkpoint,
              resume.first_epoch),
      pipeline_(plan_, map_, resume.checkpoint),
      commits_(map_.shard_count()),
      first_epoch_(resume.first_epoch),
      checkpoint_(resume.checkpoint),
      digests_(std::move(resume.digests)),
      expects_rejoin_(checkpoint_ > 0),
      evaluated_checkpoint_(resume.is_evaluated ? resume.checkpoint : 0),
      learning_(resume.learning) {
  GLEANER_CHECK(config_.label_counts.size() == model_.labels);
  if (config_.lends_input) input_.emplace(plan_, map_, plan_.round_begin(checkpoint_));
  last_record_.batches = plan_.round_begin(checkpoint_);
}

Effects MasterCore::handle(Event event, Instant now) {
  if (is_done_) return {};
  now_ = now;
  if (born_ == Instant{}) born_ = now_;
  std::visit([this](auto& e) { on(e); }, event);
  if (!is_done_) schedule();
  note_progress();
  return std::exchange(effects_, {});
}

// ---- Messages ----------------------------------------------------------------------------------

void MasterCore::on(MessageReceived& event) {
  const auto found = sessions_.find(event.session);
  if (found == sessions_.end()) return;  // dropped while the message was on its way
  SessionState& session = found->second;
  session.last_heard = now_;
  if (session.phase == SessionPhase::kIntroducing &&
      !std::holds_alternative<Hello>(event.message) &&
      !std::holds_alternative<Observe>(event.message)) {
    refuse(event.session, ErrorCode::kProtocol,
           fmt::format("{} before Hello: a volunteer introduces itself first",
                       message_name(event.message)),
           false);
    return;
  }
  if (session.phase != SessionPhase::kIntroducing) {
    account(session).up.add(event.message, event.bytes);
    if (std::holds_alternative<UnitResult>(event.message) ||
        std::holds_alternative<InputResult>(event.message)) {
      unit_bytes_up_ += event.bytes;
      round_bytes_up_ += event.bytes;
    }
  }
  std::visit([&](auto& message) { on_message(event.session, session, message); }, event.message);
}

void MasterCore::say(SessionId id, Message message) {
  effects_.emplace_back(Send{id, std::move(message)});
}

void MasterCore::remark(Severity severity, std::string kind, std::string text) {
  effects_.emplace_back(Notice(Remark{severity, std::move(kind), std::move(text)}));
}

// ---- Worker and store --------------------------------------------------------------------------

void MasterCore::on(const ForwardDone& event) {
  pipeline_.forward_done(event);
}

void MasterCore::on(BackwardDone& event) {
  pipeline_.backward_done(event.batch);
  if (input_) input_->gradients_ready(event.batch, std::move(event.packed));
  examples_ += pipeline_.at(event.batch).examples;
}

void MasterCore::on(InputCommitted& event) {
  for (InputCommitted::Part& part : event.parts) {
    commits_.expect(event.round, part.shard, part.parts);
    effects_.emplace_back(StorageTask(StageTask{SessionId{}, part.shard, event.round, part.part,
                                                part.parts, std::move(part.update)}));
  }
}

void MasterCore::on(const EvalForwardDone& event) {
  evaluation_->forward_done(event);
}

void MasterCore::on(const EvalChunkScored&) {}

void MasterCore::on(const EvalFinished& event) {
  last_evaluation_ = event.evaluation;
  learning_.add_evaluation(checkpoint_, event.evaluation.p_at_1);
  evaluation_.reset();
  evaluated_checkpoint_ = checkpoint_;
  is_evaluation_recorded_ = false;
  effects_.emplace_back(StorageTask(RecordEvaluationTask{event.evaluation, hand_in_accounts()}));
  effects_.emplace_back(
      Notice(CheckpointEvaluated{checkpoint_, plan_.epochs_done(checkpoint_), event.evaluation}));
}

void MasterCore::on(const Staged& event) {
  store_answered();
  const auto session = sessions_.find(event.session);
  if (session != sessions_.end()) say(event.session, CommitCredit{});
  const bool completes = commits_.staged(event.round, event.shard, event.part);
  if (raw(event.shard) >= leases_.size()) return;  // the worker's
  ShardLease& lease = leases_.at(event.shard);
  if (completes) lease.committed = std::max(lease.committed, event.round + 1);
  // A holder is told of its own commit, even where that of a holder before made the round durable.
  const bool is_holders = session != sessions_.end() && lease.state != LeaseState::kFree &&
                          lease.holder == event.session && lease.next_commit > event.round;
  if (!is_holders || !commits_.is_committed(event.round, event.shard) ||
      !commits_.is_last_part(event.round, event.shard, event.part)) {
    return;
  }
  ++account(session->second).commits;
  say(event.session, CommitAck{{event.shard, lease.epoch}, event.round});
}

void MasterCore::on(Folded& event) {
  store_answered();
  is_folding_ = false;
  checkpoint_ = event.round + 1;
  learning_.add_round(last_record_.loss, last_record_.code_length);
  digests_ = std::move(event.digests);
  commits_.forget(event.round);
  pipeline_.forget_before(plan_.round_begin(checkpoint_));
  if (input_) input_->forget_before(plan_.round_begin(checkpoint_));
  weigh_balance();
  effects_.emplace_back(Notice(CheckpointReached{last_record_}));
}

void MasterCore::on(ChunkRead& event) {
  store_answered();
  const auto session = sessions_.find(event.session);
  if (session == sessions_.end()) return;
  session->second.chunks_in_flight.erase({event.lease.epoch, event.chunk});
  ShardLease* const lease = leases_.find(event.lease, event.session);
  if (lease == nullptr) return;
  lease->chunks_sent = std::min(lease->chunks_sent + 1, lease->chunks);
  say(event.session, ShardChunk{event.lease, event.chunk, std::move(event.rows)});
}

void MasterCore::on(const HistoryRecorded&) {
  store_answered();
  is_evaluation_recorded_ = true;
  round_started_ = now_;
}

void MasterCore::on(const StoreFull& event) {
  if (store_full_since_) return;
  store_full_since_ = now_;
  store_full_reason_ = event.error.message;
  effects_.emplace_back(Notice(TrainingPaused{store_full_reason_}));
  stop_if_full();
}

void MasterCore::stop_if_full() {
  if (!stop_at_ || *stop_at_ <= checkpoint_ || !store_full_since_) return;
  finish({Outcome::kAbandoned,
          {ErrorCode::kShuttingDown,
           fmt::format("there is no room to finish round {} ({}): it is abandoned and will be "
                       "trained again from checkpoint {}",
                       checkpoint_, store_full_reason_, checkpoint_)}});
}

void MasterCore::store_answered() {
  if (!store_full_since_) return;
  effects_.emplace_back(Notice(TrainingResumed{now_ - *store_full_since_}));
  store_full_since_.reset();
  // Nobody could do what it owed.
  for (auto& [id, session] : sessions_) session.last_progress = now_;
}

void MasterCore::on(const TaskFailed& event) {
  finish({Outcome::kFailed, event.error});
}

// ---- Stopping ----------------------------------------------------------------------------------

void MasterCore::on(const StopRequested&) {
  if (stop_at_) {
    finish({Outcome::kAbandoned,
            {ErrorCode::kShuttingDown,
             fmt::format("stopped at once: round {} is abandoned and will be trained again from "
                         "checkpoint {}",
                         checkpoint_, checkpoint_)}});
    return;
  }
  stop_at_ = std::max(checkpoint_, pipeline_.rounds_started());
  stop_deadline_ = now_ + config_.stop_grace;
  stop_if_full();
  if (is_done_) return;
  if (*stop_at_ > checkpoint_) {
    remark(Severity::kInfo, "stopping",
           fmt::format("stopping: finishing round {} first, for at most {} s", *stop_at_ - 1,
                       config_.stop_grace.count() / 1000));
  }
}

void MasterCore::finish(Done done) {
  if (is_done_) return;
  Goodbye goodbye;
  if (done.outcome == Outcome::kFinished) {
    goodbye = {ErrorCode::kFinished, "the run is complete"};
  } else {
    goodbye = {ErrorCode::kShuttingDown, "the master is shutting down"};
  }
  for (const auto& [id, session] : sessions_) {
    say(id, goodbye);
    effects_.emplace_back(CloseSession{id});
  }
  effects_.emplace_back(std::move(done));
  is_done_ = true;
}

}  // namespace gleaner

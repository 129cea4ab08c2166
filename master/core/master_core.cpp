#include "master/core/master_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "schema/versions.hpp"

namespace gleaner {

MasterCore::MasterCore(const ModelConfig& model, CoreConfig config, ResumePoint resume)
    : model_(model),
      config_(std::move(config)),
      plan_(model_),
      map_(model_),
      leases_(model_.output_shards, resume.checkpoint),
      pipeline_(plan_, map_, resume.checkpoint),
      commits_(map_.shard_count()),
      checkpoint_(resume.checkpoint),
      evaluated_checkpoint_(resume.is_evaluated ? resume.checkpoint : 0) {
  GLEANER_CHECK(config_.label_counts.size() == model_.labels);
  last_record_.batches = plan_.round_begin(checkpoint_);
}

Effects MasterCore::handle(Event event, Instant now) {
  if (is_done_) return {};
  now_ = now;
  std::visit([this](auto& e) { on(e); }, event);
  if (!is_done_) schedule();
  return std::exchange(effects_, {});
}

// ---- Sessions ----------------------------------------------------------------------------------

void MasterCore::on(const SessionOpened& event) {
  SessionState session;
  session.peer = event.peer;
  session.opened = session.last_heard = session.last_said = session.last_progress = now_;
  sessions_.emplace(event.session, std::move(session));
}

void MasterCore::on(MessageReceived& event) {
  const auto found = sessions_.find(event.session);
  if (found == sessions_.end()) return;  // dropped while the message was on its way
  SessionState& session = found->second;
  session.last_heard = now_;
  if (session.phase == SessionPhase::kIntroducing &&
      !std::holds_alternative<Hello>(event.message)) {
    refuse(event.session, ErrorCode::kProtocol,
           fmt::format("{} before Hello: a volunteer introduces itself first",
                       message_name(event.message)),
           false);
    return;
  }
  if (session.phase != SessionPhase::kIntroducing) {
    account(session).bytes_up += event.bytes;
    if (std::holds_alternative<UnitResult>(event.message)) {
      unit_bytes_up_ += event.bytes;
      round_bytes_up_ += event.bytes;
    }
  }
  std::visit([&](auto& message) { on_message(event.session, session, message); }, event.message);
}

void MasterCore::on(const SessionClosed& event) {
  drop_session(event.session, event.reason);
}

void MasterCore::say(SessionId id, Message message) {
  effects_.emplace_back(Send{id, std::move(message)});
}

void MasterCore::refuse(SessionId id, ErrorCode code, std::string sentence, bool retry) {
  say(id, Refusal{code, sentence, retry});
  effects_.emplace_back(CloseSession{id});
  drop_session(id, sentence);
}

void MasterCore::drop_session(SessionId id, const std::string& reason) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  const SessionState session = std::move(found->second);
  sessions_.erase(found);
  if (session.phase == SessionPhase::kIntroducing) {
    remark(Severity::kWarning, "turned_away", fmt::format("{}: {}", session.peer, reason));
    return;
  }
  const std::vector<ShardId> freed = leases_.revoke_all(id, now_);
  for (const auto& [unit_id, unit] : session.units) {
    if (unit.kind != UnitInFlight::Kind::kEvaluate || !evaluation_) continue;
    std::vector<ShardId> shards;
    for (const LeaseRef& lease : unit.leases) shards.push_back(lease.shard);
    evaluation_->unassigned(unit.eval_begin, shards);
  }
  effects_.emplace_back(
      Notice(VolunteerGone{session.name(), reason, session.phase == SessionPhase::kLeaving,
                           static_cast<std::uint32_t>(freed.size()), active_sessions()}));
}

void MasterCore::remark(Severity severity, std::string kind, std::string text) {
  effects_.emplace_back(Notice(Remark{severity, std::move(kind), std::move(text)}));
}

std::uint32_t MasterCore::active_sessions() const {
  return static_cast<std::uint32_t>(
      std::count_if(sessions_.begin(), sessions_.end(),
                    [](const auto& entry) { return entry.second.phase == SessionPhase::kActive; }));
}

AccountRecord& MasterCore::account(const SessionState& session) {
  const Hello& hello = session.hello;
  AccountRecord& record = accounts_[{hello.identity_high, hello.identity_low}];
  record.identity_high = hello.identity_high;
  record.identity_low = hello.identity_low;
  record.name = session.name();
  return record;
}

std::vector<AccountRecord> MasterCore::accounts() const {
  std::vector<AccountRecord> all;
  all.reserve(accounts_.size());
  for (const auto& [identity, record] : accounts_) all.push_back(record);
  return all;
}

void MasterCore::record_sent(SessionId id, const Message& message, std::size_t bytes) {
  if (std::holds_alternative<TrainUnit>(message)) {
    unit_bytes_down_ += bytes;
    round_bytes_down_ += bytes;
  }
  const auto found = sessions_.find(id);
  if (found != sessions_.end() && found->second.phase != SessionPhase::kIntroducing) {
    account(found->second).bytes_down += bytes;
  }
}

// ---- Worker and store --------------------------------------------------------------------------

void MasterCore::on(const ForwardDone& event) {
  pipeline_.forward_done(event);
}

void MasterCore::on(const BackwardDone& event) {
  pipeline_.backward_done(event.batch);
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
  evaluation_.reset();
  evaluated_checkpoint_ = checkpoint_;
  is_evaluation_recorded_ = false;
  effects_.emplace_back(StorageTask(RecordEvaluationTask{event.evaluation}));
  effects_.emplace_back(Notice(
      CheckpointEvaluated{checkpoint_, checkpoint_ / plan_.rounds_per_epoch(), event.evaluation}));
}

void MasterCore::on(const Staged& event) {
  if (!commits_.staged(event.round, event.shard, event.part)) return;
  if (!map_.is_output(event.shard)) return;
  ShardLease& lease = leases_.at(event.shard);
  lease.committed = std::max(lease.committed, event.round + 1);
  const auto session = sessions_.find(event.session);
  if (session == sessions_.end()) return;
  ++account(session->second).commits;
  say(event.session, CommitAck{{event.shard, lease.epoch}, event.round});
}

void MasterCore::on(const Folded& event) {
  is_folding_ = false;
  checkpoint_ = event.round + 1;
  commits_.forget(event.round);
  pipeline_.forget_before(plan_.round_begin(checkpoint_));
  round_started_ = now_;
  wants_rebalance_ = true;
  effects_.emplace_back(Notice(CheckpointReached{last_record_}));
}

void MasterCore::on(ChunkRead& event) {
  const auto session = sessions_.find(event.session);
  if (session == sessions_.end()) return;
  session->second.chunks_in_flight.erase({event.lease.shard, event.chunk});
  if (leases_.find(event.lease, event.session) == nullptr) return;
  say(event.session, ShardChunk{event.lease, event.chunk, std::move(event.rows)});
}

void MasterCore::on(const HistoryRecorded&) {
  is_evaluation_recorded_ = true;
  round_started_ = now_;
}

void MasterCore::on(const TaskFailed& event) {
  finish(Outcome::kFailed, event.error);
}

// ---- Stopping and time -------------------------------------------------------------------------

void MasterCore::on(const StopRequested&) {
  if (stop_at_) {
    finish(Outcome::kAbandoned,
           {ErrorCode::kShuttingDown,
            fmt::format("stopped at once: round {} is abandoned and will be trained again from "
                        "checkpoint {}",
                        checkpoint_, checkpoint_)});
    return;
  }
  stop_at_ = std::max(checkpoint_, pipeline_.rounds_started());
  stop_deadline_ = now_ + config_.stop_grace;
  if (*stop_at_ > checkpoint_) {
    remark(Severity::kInfo, "stopping",
           fmt::format("stopping: finishing round {} first, for at most {} s", *stop_at_ - 1,
                       config_.stop_grace.count() / 1000));
  }
}

void MasterCore::on(const Tick&) {
  std::vector<std::pair<SessionId, std::string>> gone;
  for (auto& [id, session] : sessions_) {
    const auto seconds = [](auto duration) {
      return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
    };
    if (session.phase == SessionPhase::kIntroducing) {
      if (now_ - session.opened >= config_.hello_deadline) {
        gone.emplace_back(id, fmt::format("no Hello within {} s", seconds(config_.hello_deadline)));
      }
      continue;
    }
    const bool owes = !session.units.empty() || !leases_.held_by(id).empty();
    if (now_ - session.last_heard >= config_.silence) {
      gone.emplace_back(id, fmt::format("silent for {} s", seconds(now_ - session.last_heard)));
    } else if (owes && !session.units.empty() && now_ - session.last_progress >= config_.stall) {
      gone.emplace_back(
          id, fmt::format("owes results for {} s", seconds(now_ - session.last_progress)));
    } else {
      keep_in_touch(id, session);
    }
  }
  for (const auto& [id, reason] : gone) {
    say(id, Refusal{ErrorCode::kStaleLease, reason + ": connect again to take part", true});
    effects_.emplace_back(CloseSession{id});
    drop_session(id, reason);
  }
  if (stop_deadline_ && now_ >= *stop_deadline_) {
    finish(
        Outcome::kAbandoned,
        {ErrorCode::kShuttingDown,
         fmt::format("round {} did not become whole in time: it is abandoned and will be trained "
                     "again from checkpoint {}",
                     checkpoint_, checkpoint_)});
  }
}

void MasterCore::keep_in_touch(SessionId id, SessionState& session) {
  if (now_ - session.last_said < config_.heartbeat) return;
  session.last_said = now_;
  RunNews news;
  news.round = checkpoint_;
  news.rounds = plan_.round_count();
  news.epoch = pipeline_.applied() < plan_.batch_count() ? plan_.epoch_of(pipeline_.applied())
                                                         : model_.epochs;
  news.epochs = model_.epochs;
  news.volunteers = active_sessions();
  news.precision_at_1 = static_cast<float>(last_evaluation_.p_at_1);
  news.waiting_for = waiting_for();
  Heartbeat heartbeat;
  heartbeat.echo_us = static_cast<std::uint64_t>(now_.time_since_epoch().count());
  heartbeat.echoed_us = session.peer_clock_us;
  heartbeat.news = std::move(news);
  say(id, std::move(heartbeat));
}

void MasterCore::finish(Outcome outcome, Error error) {
  if (is_done_) return;
  Goodbye goodbye;
  if (outcome == Outcome::kFinished) {
    goodbye = {ErrorCode::kFinished, "the run is complete"};
  } else {
    goodbye = {ErrorCode::kShuttingDown, "the master is shutting down"};
  }
  for (const auto& [id, session] : sessions_) {
    say(id, goodbye);
    effects_.emplace_back(CloseSession{id});
  }
  effects_.emplace_back(Done{outcome, std::move(error)});
  is_done_ = true;
}

}  // namespace gleaner

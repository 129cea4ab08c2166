#include "master/core/master_core.hpp"

#include <fmt/format.h>

#include "master/core/session.hpp"
#include "schema/delivery.hpp"

namespace gleaner {
namespace {

constexpr const char* kSameKey =
    "another volunteer with the same key, which was started later, takes this one's place: give "
    "each volunteer a --cache folder of its own";

}  // namespace

MasterCore::MasterCore(const ModelConfig& model, CoreConfig config, ResumePoint resume)
    : run_(model, std::move(config), std::move(resume.rate_cuts)),
      sessions_(run_, outbox_, resume.first_epoch, std::move(resume.proven),
                std::move(resume.trained)),
      pipeline_(run_.plan, run_.map, resume.checkpoint),
      placement_(run_, outbox_, sessions_, pipeline_, input_, resume),
      audits_(run_, outbox_, sessions_, placement_),
      trials_(run_, outbox_, sessions_, placement_, audits_, pipeline_),
      evaluations_(run_, resume),
      rounds_(run_, outbox_, sessions_, placement_, audits_, pipeline_, shard_rounds_, evaluations_,
              meter_, resume),
      ledger_(run_, outbox_, sessions_),
      units_(run_, outbox_, sessions_, ledger_, placement_, audits_, trials_, pipeline_, input_,
             evaluations_, meter_),
      view_(run_, outbox_, life_, sessions_, placement_, audits_, pipeline_, input_, shard_rounds_,
            evaluations_, meter_, rounds_, resume.first_epoch) {
  if (run_.map.is_wide()) {
    shard_rounds_.emplace(run_, outbox_, sessions_, audits_, resume);
    bag_.emplace(run_, outbox_, sessions_, placement_, ledger_, *shard_rounds_, rounds_, meter_);
  }
  if (run_.config.lends_input) {
    input_.emplace(run_.plan, run_.map, run_.plan.round_begin(resume.checkpoint));
  }
}

Effects MasterCore::handle(Event event, Instant now) {
  if (const auto* sent = std::get_if<MessageSent>(&event)) {
    on(*sent);
    return {};
  }
  if (life_.is_done) return {};
  // Only the worker's next task waits for a sum, and the worker does its tasks in order.
  if (const auto* added = std::get_if<GradientsAdded>(&event); added && !added->error) return {};
  outbox_.set_now(now);
  if (life_.born == Instant{}) life_.born = now;
  if (concerns_all(event)) look_at_all();
  std::visit([this](auto& e) { on(e); }, event);
  if (!life_.is_done) schedule();
  view_.note_progress();
  return outbox_.take();
}

void MasterCore::look_at_all() {
  placement_.look_again();
  audits_.look_at_all();
  units_.all_may_begin();
  if (bag_) bag_->look_at_all();
}

// Decides on the next work. Reads only the state that events left, so that the order of events
// within an instant does not matter.
void MasterCore::schedule() {
  if (!life_.is_started) {
    if (sessions_.active() < run_.config.min_volunteers) {
      if (rounds_.is_stopping()) finish_if(rounds_.complete());
      return;
    }
    life_.is_started = true;
    meter_.restart_clock(outbox_.now());
  }
  judge();
  if (life_.is_done) return;
  placement_.update();
  finish_if(rounds_.close());
  if (life_.is_done) return;
  audit();
  rounds_.begin_evaluation_if_due();
  issue();
  let_leavers_go();
  finish_if(rounds_.complete());
}

void MasterCore::audit() {
  // Closing a round may have drawn further audits.
  if (!bag_) {
    for (const SessionId auditor : audits_.update()) units_.may_begin(auditor);
    units_.count_confirmed();
  }
  const bool is_needed = bag_ ? bag_->wants_referee() : audits_.wants_referee();
  if (!is_needed || life_.has_called_referee) return;
  life_.has_called_referee = true;
  outbox_.tell(RefereeWanted{});
  outbox_.log(LogLevel::kInfo, "referee",
              "there is nobody to do a volunteer's work again: this process does it");
}

void MasterCore::issue() {
  if (!bag_) {
    for (WorkerTask& task : pipeline_.advance(rounds_.open_end())) units_.perform(std::move(task));
  }
  if (auto& evaluation = evaluations_.current()) {
    for (WorkerTask& task : evaluation->advance()) units_.perform(std::move(task));
  }
  bag_ ? bag_->lend() : units_.issue(rounds_.checkpoint());
}

// ---- Answers of worker and store ---------------------------------------------------------------

void MasterCore::on(const ForwardDone& event) {
  pipeline_.forward_done(event);
  units_.all_may_begin();
}

void MasterCore::on(BackwardDone& event) {
  pipeline_.backward_done(event.batch);
  if (input_) {
    input_->gradients_ready(event.batch, std::move(event.packed));
    units_.all_may_begin();
  }
  meter_.batch_applied(pipeline_.at(event.batch).examples);
}

void MasterCore::on(PointsRead& event) {
  if (const auto answered = units_.on(event); !answered) refuse(event.session, answered.error());
}

void MasterCore::on(const Staged& event) {
  rounds_.store_answered();
  rounds_.on(event);
  // The commit may have been on its way to the store when its relay was lost.
  if (!lost_gradients_.empty()) check_lost_gradients(false);
}

void MasterCore::on(Folded& event) {
  rounds_.store_answered();
  rounds_.on(event);
  if (!bag_) {
    trials_.folded(event.round, *rounds_.last_receipts());
    const BatchIndex begin = run_.plan.round_begin(rounds_.checkpoint());
    pipeline_.forget_before(begin);
    if (input_) input_->forget_before(begin);
    placement_.weigh_balance();
  }
  const RoundRecord& record = rounds_.last_record();
  outbox_.tell(CheckpointSaved{record, run_.plan.round_count(), run_.model.epochs,
                               run_.plan.ends_epoch(record.round()), rounds_.last_receipts()});
}

void MasterCore::on(const GradientsAdded& event) {
  audits_.convict({event.sender, event.error->message, true});
}

void MasterCore::on(const RelayGone& event) {
  for (const auto& lost : pipeline_.break_promises(event.relay)) lost_gradients_.insert(lost);
  check_lost_gradients(true);
}

// A shard's next holder computes a lost gradient if it starts from a state before the batch. Where
// only a later state will be used, the open rounds are trained again.
void MasterCore::check_lost_gradients(bool is_just_lost) {
  const auto is_beyond = [&](const ShardLease& lease, BatchIndex batch) {
    const bool is_held = lease.state != LeaseState::kFree && lease.next_batch > batch;
    const bool is_kept = lease.handed_over && lease.handed_over->next_batch > batch;
    return is_just_lost && (is_held || is_kept);
  };
  std::erase_if(lost_gradients_, [&](const auto& lost) {
    return lost.first < pipeline_.applied() || pipeline_.is_covered(lost.first, lost.second);
  });
  for (const auto& [batch, shard] : lost_gradients_) {
    const ShardLease& lease = leases().at(shard);
    if (lease.committed <= run_.plan.round_of(batch) && !is_beyond(lease, batch) &&
        !is_beyond(placement_.shadows().at(shard), batch)) {
      continue;
    }
    finish({Outcome::kTrainAgain,
            {ErrorCode::kIo,
             fmt::format("a relay was lost with gradients of round {}, which is trained again",
                         run_.plan.round_of(batch))},
            LostGradients{}});
    return;
  }
}

void MasterCore::on(ChunkRead& event) {
  rounds_.store_answered();
  event.session == SessionId{} ? trials_.on(event, rounds_.is_folding()) : placement_.on(event);
}

void MasterCore::on(const HistoryRecorded& event) {
  rounds_.store_answered();
  rounds_.on(event);
}

// ---- Messages ----------------------------------------------------------------------------------

void MasterCore::on(MessageReceived& event) {
  SessionState* const session = sessions_.find(event.session);
  if (session == nullptr) return;  // dropped while the message was on its way
  bag_ ? bag_->heard(event.session) : units_.may_begin(event.session);
  if (placement_.is_quiet(*session)) placement_.look_again();
  const Instant heard = std::exchange(session->last_heard, outbox_.now());
  if (session->phase != SessionPhase::kIntroducing) {
    AccountRecord& account = sessions_.account(*session);
    account.up.add(event.message.index(), event.bytes);
    account.here += session->last_heard - heard;
    if (std::holds_alternative<UnitResult>(event.message) ||
        std::holds_alternative<InputResult>(event.message)) {
      meter_.received(event.bytes);
    }
  } else if (!std::holds_alternative<Hello>(event.message) &&
             !std::holds_alternative<Observe>(event.message)) {
    refuse(event.session, protocol_error("{} before Hello: a volunteer introduces itself first",
                                         message_name(event.message)));
    return;
  }
  const Result<void> received = deliver<route::kUp | route::kAsk>(
      event.message, [&](auto& message) { return receive(event.session, *session, message); });
  if (!received) refuse(event.session, received.error());
}

Result<void> MasterCore::receive(SessionId id, SessionState& session, UnitResult& result) {
  return bag_ ? bag_->receive(id, session, result) : units_.receive(id, session, result);
}

Result<void> MasterCore::receive(SessionId id, SessionState& session, EvalResult& result) {
  return bag_ ? bag_->receive(id, session, result)
              : units_.receive(id, session, result, rounds_.checkpoint());
}

Result<void> MasterCore::receive(SessionId id, SessionState& session, ChunkRequest& request) {
  return trials_.is_on_trial(id, request.lease) ? trials_.receive(id, request)
                                                : placement_.receive(id, session, request);
}

Result<void> MasterCore::receive(SessionId id, SessionState&, ShardReady& ready) {
  return trials_.is_on_trial(id, ready.lease) ? trials_.receive(id, ready)
                                              : placement_.receive(id, ready);
}

Result<void> MasterCore::receive(SessionId id, SessionState& session, HandOver& part) {
  if (bag_) return bag_->receive(id, session, part);
  note_change_of(id);
  return placement_.receive(id, session, part);
}

Result<void> MasterCore::receive(SessionId id, SessionState& session, ShardOffer& offer) {
  note_change_of(id);
  return placement_.receive(id, session, offer, rounds_.checkpoint(), rounds_.is_folding(),
                            rounds_.digests());
}

void MasterCore::receive(SessionId id, SessionState& session, const Heartbeat& heartbeat) {
  const bool was_paused = session.is_paused();
  sessions_.heard(session, heartbeat);
  if (session.is_paused() != was_paused) note_change_of(id);
}

void MasterCore::receive(SessionId id, SessionState&, const Goodbye& goodbye) {
  note_change_of(id);
  outbox_.close(id);
  drop_session(id, goodbye.sentence.empty() ? "it said goodbye" : goodbye.sentence);
}

void MasterCore::note_change_of(SessionId id) {
  audits_.heard(id);
  placement_.look_again();
}

void MasterCore::on(const MessageSent& event) {
  Traffic traffic;
  traffic.add(event.type, event.bytes);
  meter_.sent(traffic.units);
  const SessionState* const session = sessions_.find(event.session);
  if (session != nullptr && session->phase != SessionPhase::kIntroducing) {
    sessions_.account(*session).down += traffic;
  }
}

Result<void> MasterCore::receive(SessionId id, SessionState& session, Hello& hello) {
  note_change_of(id);
  const Result<std::uint32_t> protocol = sessions_.check(session, hello);
  if (!protocol) return protocol.error();
  if (const std::optional<SessionId> old = sessions_.of_identity(session.standing.identity)) {
    const std::uint64_t process = sessions_.find(*old)->hello.process;
    // The Hello of an ended process may arrive after the Hello of the next one. The ended process
    // is told to try again: if it is in fact the later one, with a clock that was set back, the
    // other's session ends by its silence.
    if (process > hello.process) return Error{ErrorCode::kBusy, kSameKey};
    // Two connections of one process may arrive in the wrong order: the old one may be in use.
    outbox_.send(*old, Refusal{ErrorCode::kIdentity, kSameKey, process == hello.process});
    outbox_.close(*old);
    drop_session(*old, "it connected again");
  }
  Result<void> active =
      sessions_.activate(id, session, std::move(hello), *protocol, rounds_.checkpoint());
  if (active && !session.awaits_offer) placement_.newcomer_came();
  if (active && !bag_) trials_.came(id);
  return active;
}

Result<void> MasterCore::receive(SessionId id, SessionState& session, const Observe& observe) {
  const Result<std::uint32_t> protocol = sessions_.admit_observer(session, observe);
  if (!protocol) return protocol.error();
  RunStatus answer = status();
  answer.protocol = *protocol;
  outbox_.send(id, std::move(answer));
  outbox_.close(id);
  sessions_.take(id);
  return {};
}

void MasterCore::receive(SessionId id, SessionState& session, const Leaving& leaving) {
  note_change_of(id);
  if (session.phase != SessionPhase::kActive) return;
  sessions_.leaves(id, session);
  if (!bag_) audits_.auditor_leaves(id);
  placement_.ask_back(id, session, leaving.reason);
}

void MasterCore::on(const Banned& event) {
  if (!may_be_unaudited(event.key)) return;
  finish({Outcome::kTrainAgain,
          {ErrorCode::kFault,
           fmt::format("{} is banned: what it did and nobody audited is trained again without it",
                       event.name)},
          FalseWork{{event.key}}});
}

// ---- Time --------------------------------------------------------------------------------------

void MasterCore::on(const Tick&) {
  sessions_.tick();
  std::vector<std::pair<SessionId, std::string>> ended;
  std::optional<RunNews> news;  // the same for everyone
  for (auto& [id, state] : sessions_.all()) {
    SessionState& session = state;
    const auto outstanding = [&, owner = id] {
      if (rounds_.store_full_since()) return std::optional<OutstandingWork>();
      const std::optional<OutstandingWork> trial = trials_.outstanding(owner);
      return trial ? trial : placement_.first_outstanding(owner, session);
    };
    if (auto overdue = sessions_.overdue(session, outstanding)) {
      if (overdue->waited) sessions_.quarantine(session, *overdue->waited);
      ended.emplace_back(id, std::move(overdue->reason));
    } else if (session.phase != SessionPhase::kIntroducing) {
      if (sessions_.is_heartbeat_due(session)) {
        if (!news) news = view_.news();
        sessions_.send_heartbeat(id, session, *news);
      }
      placement_.forget_slowness(id, session);
    }
  }
  placement_.look_again();
  if (bag_) {
    bag_->tick();
  } else {
    audits_.look_at_some();
    units_.some_may_begin();
    trials_.tick(rounds_.checkpoint(), rounds_.is_folding());
  }
  for (const auto& [id, reason] : ended) {
    outbox_.send(id, Refusal{ErrorCode::kStaleLease,
                             reason + ": its leases have ended, connect again to take part", true});
    outbox_.close(id);
    drop_session(id, reason);
  }
  if (!rounds_.store_full_since()) {
    if (const auto relay = pipeline_.overdue_relay(outbox_.now() - run_.config.stall)) {
      outbox_.close(*relay, "it keeps gradients to itself");
    }
  }
  finish_if(rounds_.stop_overdue());
}

// How sessions end, and the run.

Goodbye MasterCore::goodbye_to(const SessionState& session, ErrorCode code, const char* why) {
  Goodbye goodbye{code, why};
  if (session.phase == SessionPhase::kIntroducing) return goodbye;
  const AccountRecord& account = sessions_.account(session);
  Thanks& thanks = goodbye.thanks.emplace().thanks;
  thanks.volunteer = account.identity;
  thanks.seconds = static_cast<std::uint64_t>(seconds_in(account.here));
  thanks.examples = account.unit_examples;
  return goodbye;
}

void MasterCore::let_leavers_go() {
  std::vector<SessionId> gone;
  for (const SessionId id : sessions_.leaving()) {
    if (sessions_.at(id).units.empty() && leases().count_held_by(id) == 0) gone.push_back(id);
  }
  for (const SessionId id : gone) {
    outbox_.send(id, goodbye_to(sessions_.at(id), ErrorCode::kShuttingDown,
                                "all its shards are handed over"));
    outbox_.close(id);
    drop_session(id, "handed over all its work");
  }
}

void MasterCore::judge() {
  std::string falsified_by;
  std::vector<KeyId> convicted;
  for (const Conviction& guilty : audits_.take_convictions()) {
    const Volunteer& who = guilty.who;
    outbox_.tell(guilty);
    outbox_.log(LogLevel::kError, "convicted",
                fmt::format("{} is kept out of this run: {}", who.name, guilty.what));
    if (const SessionState* const session = sessions_.find(who.session)) {
      ++sessions_.account(*session).faults;
      refuse(who.session, {ErrorCode::kFault, "its answers are false: " + guilty.what});
    }
    convicted.push_back(who.identity);
    // An auditor's false answers reach no model, but its own work may have gone unaudited.
    if (guilty.is_holder || may_be_unaudited(who.identity)) falsified_by = who.name;
  }
  if (falsified_by.empty()) return;
  finish({Outcome::kTrainAgain,
          {ErrorCode::kFault,
           fmt::format("round {} holds false work of {} and is trained again from checkpoint {}",
                       rounds_.checkpoint(), falsified_by, rounds_.checkpoint())},
          FalseWork{std::move(convicted)}});
}

bool MasterCore::may_be_unaudited(const KeyId& key) const {
  const CoreConfig& config = run_.config;
  return (config.audit == AuditMode::kAdaptive || config.holds_unaudited) &&
         sessions_.may_have_trained(key);
}

void MasterCore::refuse(SessionId id, const Error& error) {
  outbox_.send(id, Refusal{error.code, error.message, error.code == ErrorCode::kBusy});
  outbox_.close(id);
  drop_session(id, error.message);
}

void MasterCore::drop_session(SessionId id, const std::string& reason) {
  const std::optional<SessionState> session = sessions_.take(id);
  if (!session) return;
  if (session->phase == SessionPhase::kIntroducing) {
    outbox_.log(LogLevel::kWarning, "turned_away", session->peer + ": " + reason);
    return;
  }
  note_change_of(id);
  const std::uint32_t freed =
      placement_.holder_gone(id, session->name(), reason, rounds_.checkpoint());
  if (bag_) {
    bag_->session_gone(id);
  } else {
    units_.abandon(*session);
    audits_.session_gone(id);
    trials_.session_gone(id);
  }
  sessions_.departed(*session, reason, freed);
}

void MasterCore::finish_if(std::optional<Done> done) {
  if (done) finish(std::move(*done));
}

void MasterCore::finish(Done done) {
  if (life_.is_done) return;
  const bool is_finished = done.outcome == Outcome::kFinished;
  const ErrorCode code = is_finished ? ErrorCode::kFinished : ErrorCode::kShuttingDown;
  const char* const why = is_finished ? "the run is complete" : "the master is shutting down";
  for (const auto& [id, session] : sessions_.all()) {
    outbox_.send(id, goodbye_to(session, code, why));
    outbox_.close(id);
  }
  life_.is_done = true;
  life_.goes_on = done.outcome == Outcome::kTrainAgain;
  outbox_.push(std::move(done));
}

}  // namespace gleaner

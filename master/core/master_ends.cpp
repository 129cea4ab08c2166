// How sessions end, and the run.
#include <fmt/format.h>

#include <utility>

#include "master/core/master_core.hpp"

namespace gleaner {

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
    // An auditor's lies reach no model, but it may have had work of its own that nobody audited.
    if (guilty.is_holder || may_be_unaudited(who.identity)) falsified_by = who.name;
  }
  if (falsified_by.empty()) return;
  finish({Outcome::kFalsified,
          {ErrorCode::kFault,
           fmt::format("round {} holds false work of {} and is trained again from checkpoint {}",
                       rounds_.checkpoint(), falsified_by, rounds_.checkpoint())},
          std::nullopt,
          std::move(convicted)});
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
  units_.abandon(*session);
  audits_.session_gone(id);
  trials_.session_gone(id);
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
  outbox_.push(std::move(done));
  life_.is_done = true;
}

}  // namespace gleaner

#include "master/core/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "master/core/events.hpp"
#include "master/core/session.hpp"
#include "schema/versions.hpp"

namespace gleaner {
namespace {

// Sessions that are marked at each tick.
constexpr std::size_t kInTurn = 256;

}  // namespace

void Units::some_may_begin() {
  in_turn(sessions_.all(), last_in_turn_, kInTurn, [&](const auto& entry) {
    last_in_turn_ = entry.first;
    may_begin(entry.first);
    return true;
  });
}

void Units::issue(RoundIndex checkpoint) {
  if (std::exchange(are_all_due_, false) || run_.config.looks_at_all) {
    for (const auto& [id, shards] : leases_.holders()) due_.insert(id);
    for (const auto& [id, shards] : placement_.shadows().holders()) due_.insert(id);
  }
  const auto is_able = [](const SessionState* session) {
    return session != nullptr && session->phase == SessionPhase::kActive && !session->is_paused();
  };
  std::erase_if(due_, [&](SessionId id) { return !is_able(sessions_.find(id)); });
  for (const SessionId id : due_) issue_own(id, sessions_.at(id), checkpoint);
  for (const SessionId id : due_) issue_audits(id, sessions_.at(id));
  due_.clear();
  issue_trials();
}

void Units::issue_own(SessionId id, SessionState& session, RoundIndex checkpoint) {
  if (leases_.count_held_by(id) == 0) return;
  if (input_) issue_input(id, session);
  issue_training(id, session);
  if (evaluations_.current()) issue_evaluation(id, session, checkpoint);
}

void Units::issue_trials() {
  for (auto& [id, unit] : trials_.take_units()) {
    SessionState& session = sessions_.at(id);
    TrainUnit message;
    message.leases = unit.leases;
    message.wants_gradient = unit.wants_gradient;
    message.batches = trials_.exercise_batches();
    session.batches_in_flight += unit.batches;
    ledger_.send(id, session, std::move(unit), std::move(message));
  }
}

std::vector<LeaseRef> Units::leases_of(const std::vector<ShardId>& shards) const {
  std::vector<LeaseRef> leases;
  leases.reserve(shards.size());
  for (const ShardId shard : shards) leases.push_back({shard, leases_.at(shard).epoch});
  return leases;
}

// ---- Training ----------------------------------------------------------------------------------

void Units::issue_training(SessionId id, SessionState& session) {
  const std::uint32_t limit =
      sizing_.batches_in_flight_max(session, placement_.count_held_by(id, Layer::kOutput));
  while (session.batches_in_flight < limit && issue_unit(id, session)) {
  }
}

bool Units::issue_unit(SessionId id, SessionState& session) {
  UnitInFlight unit = next_unit(id, session);
  if (unit.batches == 0 ||
      sizing_.is_early(session, unit, placement_.ready_at(id, Layer::kOutput).size())) {
    return false;
  }
  for (const LeaseRef& lease : unit.leases) {
    leases_.at(lease.shard).next_batch = unit.first + unit.batches;
  }
  send_training(id, session, std::move(unit));
  return true;
}

void Units::issue_audits(SessionId id, SessionState& session) {
  if (!audits_.is_auditor(id)) return;
  const std::uint32_t limit = sizing_.batches_in_flight_max(session, placement_.shards_at(id));
  while (session.batches_in_flight < limit) {
    std::optional<UnitInFlight> unit = audits_.next(id);
    if (!unit) return;
    audits_.issued(*unit);
    if (unit->kind == UnitInFlight::Kind::kEvaluate) {
      send_evaluation(id, session, std::move(*unit));
    } else {
      send_training(id, session, std::move(*unit));
    }
  }
}

void Units::send_training(SessionId id, SessionState& session, UnitInFlight unit) {
  TrainUnit message;
  unit.examples = 0;
  message.leases = unit.leases;
  message.wants_gradient = unit.wants_gradient;
  // An audited answer must arrive as the volunteer sent it.
  unit.may_be_summed = session.relay && session.is_trusted() && unit.wants_gradient &&
                       !unit.audit && session.hello.protocol_max >= kProtocolOfChecks;
  message.may_be_summed = unit.may_be_summed;
  for (std::uint32_t i = 0; i < unit.batches; ++i) {
    const BatchIndex batch = unit.first + i;
    message.batches.push_back({batch, pipeline_.at(batch).packed,
                               pipeline_.positives_in(batch, unit.leases),
                               run_.plan.rates(batch).output});
    unit.examples += pipeline_.at(batch).examples;
  }
  session.batches_in_flight += unit.batches;
  ledger_.send(id, session, std::move(unit), std::move(message));
}

UnitInFlight Units::next_unit(SessionId id, const SessionState& session) const {
  UnitInFlight unit;
  std::vector<ShardId> behind;
  for (const ShardId shard : placement_.ready_at(id, Layer::kOutput)) {
    const ShardLease& lease = leases_.at(shard);
    if (lease.next_batch >= pipeline_.frontier()) continue;
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
  // A unit does not cross the end of a round, because audits begin and end with rounds.
  const BatchIndex end = std::min<BatchIndex>(
      {pipeline_.frontier(), unit.first + sizing_.batches(session, unit.first, unit.leases.size()),
       run_.plan.round_end(run_.plan.round_of(unit.first))});
  BatchIndex next = unit.first + 1;
  while (next < end && std::all_of(unit.leases.begin(), unit.leases.end(), [&](const LeaseRef& l) {
           return pipeline_.is_covered(next, l.shard) != unit.wants_gradient;
         })) {
    ++next;
  }
  unit.batches = static_cast<std::uint32_t>(next - unit.first);
  return unit;
}

// ---- Evaluation --------------------------------------------------------------------------------

void Units::issue_evaluation(SessionId id, SessionState& session, RoundIndex checkpoint) {
  std::vector<ShardId> ready = placement_.ready_at(id, Layer::kOutput);
  // A shard that still replays towards the checkpoint would answer with older weights.
  const BatchIndex at = run_.plan.round_begin(checkpoint);
  std::erase_if(ready, [&](ShardId shard) { return leases_.at(shard).next_batch != at; });
  if (ready.empty()) return;
  EvaluationRun& evaluation = *evaluations_.current();
  while (true) {
    const EvaluationRun::Assignment assignment = evaluation.next_assignment(ready);
    if (assignment.shards.empty()) return;
    UnitInFlight unit;
    unit.kind = UnitInFlight::Kind::kEvaluate;
    unit.first = at;
    unit.eval_begin = assignment.begin;
    unit.leases = leases_of(assignment.shards);
    unit.hidden = assignment.packed;
    unit.examples = evaluation.examples_in(assignment.begin);
    evaluation.assigned(assignment.begin, assignment.shards);
    send_evaluation(id, session, std::move(unit));
  }
}

void Units::send_evaluation(SessionId id, SessionState& session, UnitInFlight unit) {
  EvalUnit message;
  message.top_k = run_.config.top_k;
  message.hidden = unit.hidden;
  message.leases = unit.leases;
  ledger_.send(id, session, std::move(unit), std::move(message));
}

void Units::unassign(const UnitInFlight& unit) {
  if (unit.kind != UnitInFlight::Kind::kEvaluate || unit.audit || !evaluations_.current()) return;
  std::vector<ShardId> shards;
  for (const LeaseRef& lease : unit.leases) shards.push_back(lease.shard);
  evaluations_.current()->unassigned(unit.eval_begin, shards);
}

void Units::abandon(const SessionState& session) {
  for (const auto& [id, unit] : session.units) unassign(unit);
}

// Answers to units of output shards. Nothing in an answer is believed before it is checked.
Result<void> Units::check(const UnitInFlight& unit, const UnitResult& result) {
  if (result.batches.size() != unit.batches) {
    return protocol_error("unit {} has {} batches, its result {}", raw(result.unit), unit.batches,
                          result.batches.size());
  }
  for (std::size_t i = 0; i < result.batches.size(); ++i) {
    const BatchResult& batch = result.batches[i];
    const bool fits = batch.batch == unit.first + i && batch.shards.size() == unit.leases.size() &&
                      std::equal(batch.shards.begin(), batch.shards.end(), unit.leases.begin(),
                                 [](const ShardOutcome& outcome, const LeaseRef& lease) {
                                   return outcome.shard == lease.shard;
                                 });
    if (!fits) return protocol_error("a result that does not fit unit {}", raw(result.unit));
  }
  if (result.is_summed && !unit.may_be_summed) {
    return protocol_error("the gradient of unit {} is left out", raw(result.unit));
  }
  if (result.is_summed && result.checks.empty()) {
    return protocol_error("the gradient of unit {} has no check", raw(result.unit));
  }
  return {};
}

Result<void> Units::add(SessionId id, const SessionState& session, const UnitInFlight& unit,
                        UnitResult& result) {
  const bool is_audited = sessions_.is_audited(session);
  if (run_.config.audit != AuditMode::kOff && !result.is_summed) trials_.note(result);
  std::optional<AuditedPiece> piece;
  if (is_audited) {
    piece.emplace();
    piece->unit = unit;
    piece->round = run_.plan.round_of(unit.first);
    piece->claimed = fingerprint(result);
  }
  // Where audits decide, a difference from an earlier answer convicts nobody.
  if (result.is_summed) {
    const auto promised = pipeline_.promise(std::move(result), *session.relay, id, outbox_.now());
    if (!promised) return promised;
    count_carried(unit);
    return {};
  }
  auto parts = pipeline_.add_results(std::move(result.batches), unit.wants_gradient, is_audited);
  if (!parts) return parts.error();
  if (!parts->empty()) {
    outbox_.push(WorkerTask(AddGradientsTask{session.who(id), std::move(*parts)}));
  }
  count_carried(unit);
  if (piece) audits_.answered(id, session, std::move(*piece));
  return {};
}

void Units::count_carried(const UnitInFlight& unit) {
  for (std::uint64_t i = 0; i < unit.batches; ++i) {
    meter_.carried(pipeline_.at(unit.first + i).examples);
  }
}

void Units::on(RelaySummed& event) {
  meter_.received(event.bytes);
  auto part =
      pipeline_.keep_promise(event.relay, event.batch, event.units, std::move(event.gradient));
  if (part) {
    outbox_.push(WorkerTask(AddGradientsTask{std::move(event.sender), {std::move(*part)}}));
  } else if (part.error().code != ErrorCode::kStaleLease) {
    outbox_.close(event.relay, part.error().message);
  } else if (event.units.size() > 1) {
    // Sessions of some of these units ended before their answers arrived.
    outbox_.split(event.relay, event.number);
  }
}

Result<void> Units::receive(SessionId id, SessionState& session, UnitResult& result) {
  const Result<UnitInFlight> taken = ledger_.take(session, result.unit, UnitInFlight::Kind::kTrain);
  if (!taken) return taken.error();
  const UnitInFlight& unit = *taken;
  AccountRecord& account = sessions_.account(session);
  Result<void> added = check(unit, result);
  // A volunteer that repeats the work could not pass a batch that was never answered.
  if (added && session.has_earlier_out(unit)) {
    added = protocol_error("unit {} is answered before an earlier one", raw(result.unit));
  }
  if (added && !unit.audit && !unit.is_trial) added = add(id, session, unit, result);
  if (!added) {
    ++account.units_refused;
    if (added.error().code == ErrorCode::kFault) {
      ++account.faults;
      outbox_.log(LogLevel::kError, "fault",
                  fmt::format("{}: {}", session.name(), added.error().message));
    }
    return added;
  }
  session.batches_in_flight -= unit.batches;
  note_answered(unit);
  placement_.note_outstanding_commits(id, session, unit.leases);
  ++account.units;
  account.examples += unit.examples * unit.leases.size();
  account.unit_examples += unit.examples;
  UnitSizing::measure(session, unit, unit.examples, result.compute_us, outbox_.now());
  if (unit.audit) audits_.answered_again(unit, fingerprint(result));
  if (unit.is_trial) {
    trials_.answered(id, session, result);
    audits_.heard(id);
    placement_.look_again();
  }
  return {};
}

void Units::note_answered(const UnitInFlight& unit) {
  for (const LeaseRef& lease : unit.leases) audits_.changed(lease.shard);
}

Result<void> Units::receive(SessionId id, SessionState& session, EvalResult& result,
                            RoundIndex checkpoint) {
  const Result<UnitInFlight> taken =
      ledger_.take(session, result.unit, UnitInFlight::Kind::kEvaluate);
  if (!taken) return taken.error();
  const UnitInFlight& unit = *taken;
  if (!ledger_.fits(unit, result)) {
    unassign(unit);
    ++sessions_.account(session).units_refused;
    return protocol_error("a result that does not fit unit {}", raw(result.unit));
  }
  ++sessions_.account(session).units;
  note_answered(unit);
  if (unit.audit) {
    audits_.answered_again(unit, fingerprint(result));
  } else if (sessions_.is_audited(session)) {
    AuditedPiece piece;
    piece.round = checkpoint;
    piece.claimed = fingerprint(result);
    piece.unit = unit;
    piece.best = std::move(result.best);
    audits_.answered(id, session, std::move(piece));
  } else {
    score(unit, std::move(result.best));
  }
  return {};
}

void Units::score(const UnitInFlight& unit, std::vector<ScoredNeuron> best) {
  std::vector<ShardId> shards;
  for (const LeaseRef& lease : unit.leases) shards.push_back(lease.shard);
  evaluations_.current()->scored(unit.eval_begin, shards, std::move(best));
}

void Units::count_confirmed() {
  for (AuditedPiece& piece : audits_.take_evaluations()) score(piece.unit, std::move(piece.best));
}

}  // namespace gleaner

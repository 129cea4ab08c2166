// Answers to units of output shards. Nothing in an answer is believed before it is checked.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "master/core/session.hpp"
#include "master/core/units.hpp"

namespace gleaner {
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

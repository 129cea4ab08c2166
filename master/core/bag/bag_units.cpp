// The units of the bag: what is sent to volunteers, what comes of the answers, and how leases end.
#include <algorithm>

#include "common/work/quantized_activations.hpp"
#include "master/core/bag/bag.hpp"
#include "master/core/evaluations.hpp"
#include "master/core/session.hpp"

namespace gleaner {
namespace {

// An error unless the result fits the shard-round.
Result<void> check(const UnitInFlight& unit, const UnitResult& result) {
  const std::size_t entries = std::min<std::size_t>(unit.batches, 2);
  bool fits = result.batches.size() == entries && !result.is_summed;
  for (std::size_t i = 0; fits && i < entries; ++i) {
    const BatchResult& batch = result.batches[i];
    fits = batch.batch == unit.first + i && batch.gradient.empty() && batch.shards.size() == 1 &&
           batch.shards.front().shard == unit.leases.front().shard;
  }
  if (fits) return {};
  return protocol_error("a result that does not fit unit {}", raw(result.unit));
}

// Updates the volunteer's measured speed from a result.
void measure(SessionState& session, const UnitInFlight& unit, std::uint64_t compute_us,
             Instant now) {
  const auto compute = static_cast<double>(std::clamp<std::uint64_t>(compute_us, 1, 1u << 30));
  const bool is_first = session.last_result == Instant{};
  const auto smooth = [&](double& value, double sample) {
    value = is_first ? sample : 0.8 * value + 0.2 * sample;
  };
  smooth(session.compute_us, compute / unit.batches);
  smooth(session.speed, static_cast<double>(unit.examples) * 1e6 / compute * session.threads());
  session.last_result = session.last_answer = now;
}

}  // namespace

void Bag::send_round(SessionId id, SessionState& session, const LeaseRef& lease, RoundIndex round,
                     bool is_again) {
  UnitInFlight unit;
  unit.leases = {lease};
  unit.first = run_.plan.round_begin(round);
  unit.batches = static_cast<std::uint32_t>(run_.plan.round_end(round) - unit.first);
  for (std::uint32_t i = 0; i < unit.batches; ++i) {
    unit.examples += run_.plan.examples_in(unit.first + i);
  }
  if (is_again) unit.audit.emplace();
  TrainUnit message;
  message.leases = unit.leases;
  message.batches.push_back(
      {unit.first, std::make_shared<const Bytes>(), {{0}, {}}, run_.plan.rates(unit.first).output});
  ledger_.send(id, session, std::move(unit), std::move(message));
}

void Bag::send_scoring(SessionId id, SessionState& session, const LeaseRef& lease,
                       RoundIndex checkpoint, bool is_again) {
  for (std::uint32_t chunk = 0; chunk < score_chunks(run_.config); ++chunk) {
    UnitInFlight unit;
    unit.kind = UnitInFlight::Kind::kEvaluate;
    unit.leases = {lease};
    unit.first = run_.plan.round_begin(checkpoint);
    unit.eval_begin = std::uint64_t{chunk} * kScoreChunk;
    unit.examples =
        std::min<std::uint64_t>(kScoreChunk, run_.config.evaluated_points() - unit.eval_begin);
    if (is_again) unit.audit.emplace();
    QuantizedActivations none;
    none.examples = static_cast<std::uint32_t>(unit.examples);
    EvalUnit message;
    message.leases = unit.leases;
    message.top_k = run_.config.top_k;
    message.hidden = std::make_shared<const Bytes>(pack(none));
    message.first = unit.eval_begin;
    ledger_.send(id, session, std::move(unit), std::move(message));
  }
}

void Bag::begin(ShardId shard, SessionId id, SessionState& session) {
  ShardLease& lease = leases_.at(shard);
  const LeaseRef ref{shard, lease.epoch};
  const RoundIndex round = run_.plan.round_of(lease.next_batch);
  if (work_.owes_scores(round, shard)) send_scoring(id, session, ref, round, false);
  if (round < open_end_) {
    lease.next_batch = run_.plan.round_end(round);
    send_round(id, session, ref, round, false);
    if (work_.owes_scores(round + 1, shard)) send_scoring(id, session, ref, round + 1, false);
  }
  file(shard);
}

void Bag::begin_shadow(ShardId shard, SessionId id, SessionState& session) {
  Shadow& shadow = shadows_.at(shard);
  shadow.is_begun = true;
  ShardLease& lease = shadow_leases_.at(shard);
  const LeaseRef ref{shard, lease.epoch};
  if (shadow.piece.is_scores) {
    send_scoring(id, session, ref, shadow.piece.round + 1, true);
    return;
  }
  lease.next_batch = run_.plan.round_end(shadow.piece.round);
  send_round(id, session, ref, shadow.piece.round, true);
}

Doer Bag::doer(SessionId id, const SessionState& session) const {
  return {session.who(id), session.is_trusted()};
}

bool Bag::is_cancelled(const SessionState& session, UnitId unit) const {
  return !session.units.contains(unit) && ledger_.was_sent(unit);
}

Bag::Shadow* Bag::shadow_of(const UnitInFlight& unit) {
  const auto shadow = shadows_.find(unit.leases.front().shard);
  return shadow == shadows_.end() ? nullptr : &shadow->second;
}

Result<void> Bag::receive(SessionId id, SessionState& session, UnitResult& result) {
  due_.insert(id);
  if (is_cancelled(session, result.unit)) return {};
  const Result<UnitInFlight> taken = ledger_.take(session, result.unit, UnitInFlight::Kind::kTrain);
  if (!taken) return taken.error();
  const UnitInFlight& unit = *taken;
  AccountRecord& account = sessions_.account(session);
  if (auto fits = check(unit, result); !fits) {
    ++account.units_refused;
    return fits;
  }
  const ShardId shard = unit.leases.front().shard;
  const RoundIndex round = run_.plan.round_of(unit.first);
  ++account.units;
  account.examples += unit.examples;
  account.unit_examples += std::max<std::uint64_t>(1, unit.examples / run_.map.output_shards());
  measure(session, unit, result.compute_us, outbox_.now());
  const Shadow* const shadow = shadow_of(unit);
  if (unit.audit && shadow == nullptr) return {};
  if (unit.audit && !shadow->is_spare) {
    work_.answered_again(shard, result);
  } else if (unit.audit && work_.has_result(round, shard)) {
    end_shadow(shard);
    return {};
  } else {
    if (unit.audit) swap_in_spare(shard);
    work_.answered(round, shard, doer(id, session), result);
    meter_.shard_round(unit.examples, run_.map.output_shards(), sessions_.active());
    review_spare(round, shard);
  }
  placement_.note_outstanding_commits(id, session, unit.leases);
  file(shard);
  return {};
}

Result<void> Bag::receive(SessionId id, SessionState& session, EvalResult& result) {
  due_.insert(id);
  if (is_cancelled(session, result.unit)) return {};
  const Result<UnitInFlight> taken =
      ledger_.take(session, result.unit, UnitInFlight::Kind::kEvaluate);
  if (!taken) return taken.error();
  const UnitInFlight& unit = *taken;
  if (!ledger_.fits(unit, result)) {
    ++sessions_.account(session).units_refused;
    return protocol_error("a result that does not fit unit {}", raw(result.unit));
  }
  ++sessions_.account(session).units;
  const ShardId shard = unit.leases.front().shard;
  const RoundIndex checkpoint = run_.plan.round_of(unit.first);
  const Shadow* const shadow = shadow_of(unit);
  if (unit.audit && shadow == nullptr) return {};
  if (unit.audit && !shadow->is_spare) {
    work_.scored_again(shard, result);
    shadow_leases_.note_changed(shard);
    return {};
  }
  work_.scored(checkpoint, shard, doer(id, session),
               static_cast<std::uint32_t>(unit.eval_begin / kScoreChunk), std::move(result));
  // The holder has answered first: end the spare.
  const AuditPiece piece{checkpoint - 1, shard, true};
  const bool is_scored = !work_.owes_scores(checkpoint, shard);
  if (is_scored && shadow != nullptr && shadow->is_spare && shadow->piece == piece) {
    end_shadow(shard);
  }
  file(shard);
  return {};
}

// The holder has finished the units that it had begun. The others are cancelled.
Result<void> Bag::receive(SessionId id, SessionState& session, const HandOver& part) {
  ShardLease* const lease = leases_.find(part.lease, id);
  if (lease == nullptr) return {};
  if (lease->state != LeaseState::kReleasing || part.parts != 1 || !part.rows.rows.empty() ||
      part.base_round != lease->next_commit) {
    return protocol_error("a hand-over of shard {} that does not fit the lease",
                          raw(part.lease.shard));
  }
  ledger_.cancel(session, part.lease);
  lease->held_before = session.name();
  leases_.release(part.lease.shard, outbox_.now());
  return {};
}

// ---- Leases that end ---------------------------------------------------------------------------

void Bag::revoke(LeaseTable& table, ShardId shard) {
  const ShardLease& lease = table.at(shard);
  if (lease.state == LeaseState::kFree) return;
  const LeaseRef ref{shard, lease.epoch};
  outbox_.send(lease.holder, Revoke{ref});
  ledger_.cancel(sessions_.at(lease.holder), ref);
  due_.insert(lease.holder);
  table.release(shard, outbox_.now());
}

void Bag::end_shadow(ShardId shard) {
  revoke(shadow_leases_, shard);
  shadows_.erase(shard);
  work_.stop_again(shard);
  has_news_ = true;
}

void Bag::review_spare(RoundIndex round, ShardId shard) {
  const auto shadow = shadows_.find(shard);
  if (shadow == shadows_.end() || !shadow->second.is_spare) return;
  const SessionId id = shadow_leases_.at(shard).holder;
  const SessionState& session = sessions_.at(id);
  const AuditPiece piece{round, shard, false};
  const bool is_wanted =
      shadow->second.piece == piece && work_.will_be_audited(piece) &&
      work_.may_audit(piece, session.standing.identity, session.standing, session.is_trusted());
  if (!is_wanted) return end_shadow(shard);
  shadow->second.is_spare = false;
  work_.begin_again(piece, doer(id, session));
}

void Bag::swap_in_spare(ShardId shard) {
  revoke(leases_, shard);
  placement_.take_over(shard);
  shadows_.erase(shard);
}

void Bag::take_spoiled() {
  for (const auto& [shard, round] : work_.take_spoiled()) {
    revoke(leases_, shard);
    if (shadows_.contains(shard)) end_shadow(shard);
    rounds_.forget_commits(shard, round);
    ShardLease& lease = leases_.at(shard);
    lease.committed = std::min(lease.committed, round);
    lease.moved_why = "what was done with it was false, and is done again";
    file(shard);
    has_news_ = true;
  }
}

}  // namespace gleaner

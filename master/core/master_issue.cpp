// Units: what each volunteer works on next, how large the piece is, how many are out.
#include <algorithm>

#include "common/limits.hpp"
#include "master/core/master_core.hpp"

namespace gleaner {
namespace {

// The microseconds that the session's volunteer needs for some examples on some shards, by its
// measured speed.
double expected_us(const SessionState& session, std::uint32_t examples, std::size_t shards) {
  return static_cast<double>(examples) * static_cast<double>(shards) * 1e6 / session.speed;
}

}  // namespace

std::uint32_t MasterCore::unit_batches(const SessionState& session, BatchIndex first,
                                       std::size_t shards) const {
  if (session.speed <= 0) return 1;
  const double cells = static_cast<double>(model_.batch_examples) * model_.hidden;
  const double batch_us = expected_us(session, pipeline_.at(first).examples, shards);
  const double fitting = static_cast<double>(config_.unit_target.count()) / batch_us;
  const double most =
      std::clamp(kUnitCellsMax / cells, 1.0, static_cast<double>(config_.batches_per_unit_max));
  return static_cast<std::uint32_t>(std::clamp(fitting, 1.0, most));
}

bool MasterCore::is_early(SessionId id, const SessionState& session,
                          const UnitInFlight& unit) const {
  const BatchIndex end = unit.first + unit.batches;
  const bool more_follow = end == pipeline_.frontier() && !plan_.is_round_end(end);
  if (!unit.wants_gradient || !more_follow || session.speed <= 0) return false;
  // Shards that stand behind others catch up first; then all of them share units again.
  const std::vector<ShardId> held = held_by(id, Layer::kOutput);
  const auto is_ready = [&](ShardId s) { return leases_.at(s).state == LeaseState::kReady; };
  const auto ready = std::count_if(held.begin(), held.end(), is_ready);
  if (unit.leases.size() < static_cast<std::size_t>(ready)) return false;
  // What is out keeps the volunteer busy while the next result and then the unit are on their way,
  // and as long again: speeds and links vary, and a volunteer that waits loses more than a message.
  const double batch_us = expected_us(session, model_.batch_examples, unit.leases.size());
  const auto round_trip_us = static_cast<double>(std::max<std::int64_t>(session.round_trip_us, 0));
  const double spare_us = batch_us * session.batches_in_flight - 2 * round_trip_us;
  const double affordable = std::max(0.0, spare_us / (batch_us + session.transit_us));
  // A quarter of what the lag allows: the first batch's gradient comes back with the last's.
  const std::uint32_t wanted =
      std::min({unit_batches(session, unit.first, unit.leases.size()),
                (plan_.lag(unit.first) + 1) / 4, static_cast<std::uint32_t>(affordable)});
  return unit.batches < wanted;
}

UnitInFlight MasterCore::next_unit(SessionId id, const SessionState& session) const {
  UnitInFlight unit;
  std::vector<ShardId> behind;
  for (const ShardId shard : held_by(id, Layer::kOutput)) {
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
  if (unit.batches == 0 || is_early(id, session, unit)) return false;
  TrainUnit message;
  message.leases = unit.leases;
  message.wants_gradient = unit.wants_gradient;
  for (std::uint32_t i = 0; i < unit.batches; ++i) {
    const BatchIndex batch = unit.first + i;
    message.batches.push_back({batch, pipeline_.at(batch).packed,
                               pipeline_.positives_in(batch, unit.leases),
                               plan_.rates(batch).output});
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
  if (auto* input = std::get_if<InputUnit>(&message)) input->unit = unit_id;
  begin_debt(session);
  unit.sent = now_;
  ++account(session).units_issued;
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
        expected_us(session, model_.batch_examples,
                    std::max<std::size_t>(1, held_by(id, Layer::kOutput).size()));
    const double over_round_trip = static_cast<double>(session.round_trip_us) / batch_us;
    limit +=
        static_cast<std::uint32_t>(std::min(over_round_trip, 2.0 * config_.batches_per_unit_max));
  }
  while (session.batches_in_flight < limit && issue_unit(id, session)) {
  }
}

void MasterCore::issue_evaluation(SessionId id, SessionState& session) {
  std::vector<ShardId> ready;
  for (const ShardId shard : held_by(id, Layer::kOutput)) {
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

}  // namespace gleaner

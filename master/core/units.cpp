#include "master/core/units.hpp"

#include <algorithm>
#include <utility>

#include "common/limits.hpp"
#include "master/core/events.hpp"
#include "master/core/session.hpp"
#include "schema/versions.hpp"

namespace gleaner {
namespace {

// The microseconds that the session's volunteer needs for some examples on some shards, by its
// measured speed.
double expected_us(const SessionState& session, std::uint32_t examples, std::size_t shards) {
  return static_cast<double>(examples) * static_cast<double>(shards) * 1e6 / session.speed;
}

}  // namespace

std::uint32_t UnitSizing::batches(const SessionState& session, BatchIndex first,
                                  std::size_t shards) const {
  if (session.speed <= 0) return 1;
  const double cells = static_cast<double>(run_.model.batch_examples) * run_.model.hidden;
  const double batch_us = expected_us(session, pipeline_.at(first).examples, shards);
  const double fitting = static_cast<double>(run_.config.unit_target.count()) / batch_us;
  const double most =
      std::clamp(kUnitCellsMax / cells, 1.0, static_cast<double>(run_.config.batches_per_unit_max));
  return static_cast<std::uint32_t>(std::clamp(fitting, 1.0, most));
}

bool UnitSizing::is_early(const SessionState& session, const UnitInFlight& unit,
                          std::size_t ready) const {
  const BatchIndex end = unit.first + unit.batches;
  const bool more_follow = end == pipeline_.frontier() && !run_.plan.is_round_end(end);
  if (!unit.wants_gradient || !more_follow || session.speed <= 0) return false;
  // Shards that stand behind others catch up first; then all of them share units again.
  if (unit.leases.size() < ready) return false;
  // Outstanding work keeps the volunteer busy while the next result and then the unit are on their
  // way, and as long again: speeds and links vary, and a volunteer that waits loses more than a
  // message.
  const double batch_us = expected_us(session, run_.model.batch_examples, unit.leases.size());
  const auto round_trip_us = static_cast<double>(std::max<std::int64_t>(session.round_trip_us, 0));
  const double spare_us = batch_us * session.batches_in_flight - 2 * round_trip_us;
  const double affordable = std::max(0.0, spare_us / (batch_us + session.transit_us));
  // A quarter of what the lag allows: the first batch's gradient comes back with the last's.
  const std::uint32_t wanted =
      std::min({batches(session, unit.first, unit.leases.size()),
                (run_.plan.lag(unit.first) + 1) / 4, static_cast<std::uint32_t>(affordable)});
  return unit.batches < wanted;
}

std::uint32_t UnitSizing::batches_in_flight_max(const SessionState& session,
                                                std::size_t held) const {
  // Enough to keep a volunteer busy over a round trip; the lag bounds live batches anyway, so this
  // only limits replays.
  const std::uint32_t most = run_.config.batches_per_unit_max;
  const std::uint32_t limit = std::max(run_.model.staleness + 1, 2 * most);
  const bool has_batches = pipeline_.frontier() > pipeline_.applied();
  if (session.speed <= 0 || session.round_trip_us <= 0 || !has_batches) return limit;
  const double batch_us =
      expected_us(session, run_.model.batch_examples, std::max<std::size_t>(1, held));
  const double over_round_trip = static_cast<double>(session.round_trip_us) / batch_us;
  return limit + static_cast<std::uint32_t>(std::min(over_round_trip, 2.0 * most));
}

void UnitSizing::measure(SessionState& session, const UnitInFlight& unit, std::uint64_t examples,
                         std::uint64_t compute_us, Instant now) {
  if (unit.sent <= session.paused_at) {  // the time it was out says nothing of its link
    session.last_result = session.last_answer = now;
    return;
  }
  const auto smooth = [&](double& value, double sample) {
    value = session.last_result == Instant{} ? sample : 0.97 * value + 0.03 * sample;
  };
  const auto compute = static_cast<double>(std::min<std::uint64_t>(compute_us, 1u << 30));
  const Micros round_trip(std::max<std::int64_t>(session.round_trip_us, 0));
  const Micros service = now - std::max(unit.sent + round_trip, session.last_answer);
  const double batches = unit.batches;
  smooth(session.transit_us,
         std::max(0.0, static_cast<double>(service.count()) - compute) / batches);
  smooth(session.compute_us, compute / batches);
  if (compute > 0) {
    smooth(session.speed, static_cast<double>(examples * unit.leases.size()) * 1e6 / compute);
  }
  session.last_result = session.last_answer = now;
}

namespace {

// Sessions that are looked at whenever time has passed.
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
  // Whoever holds nothing has nothing to do.
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
  // An answer that is compared with others must come as the volunteer gave it.
  unit.may_be_summed = session.relay && session.is_trusted() && unit.wants_gradient &&
                       !unit.audit && run_.map.hidden() > 0 &&
                       session.hello.protocol_max >= kProtocolOfChecks;
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

// Input shards that volunteers hold: who does which steps next, their answers, and the points that
// they need.

namespace {

// Steps of a unit: few, so that activations do not wait for each other.
constexpr std::uint32_t kStepsMax = 8;
// Points that are being read for one volunteer.
constexpr std::size_t kPointsInFlightMax = std::size_t{4} * kPointsPerRequestMax;

}  // namespace

void Units::perform(WorkerTask task) {
  if (input_) {
    all_may_begin();
    if (const auto* forward = std::get_if<ForwardTask>(&task)) return input_->push(*forward);
    if (const auto* score = std::get_if<EvalForwardTask>(&task)) return input_->push(*score);
    // The holders commit unasked, after a round's last update.
    if (std::holds_alternative<CommitInputTask>(task)) return;
    if (const auto* backward = std::get_if<BackwardTask>(&task)) input_->push(*backward);
  }
  outbox_.push(std::move(task));
}

void Units::issue_input(SessionId id, SessionState& session) {
  const std::vector<ShardId> ready = placement_.ready_at(id, Layer::kInput);
  // The lag bounds what is live; this only limits replays.
  const std::uint32_t in_flight_max = 2 * (run_.model.staleness + 1) + kStepsMax;
  while (session.input_steps_in_flight < in_flight_max) {
    UnitInFlight unit;
    unit.kind = UnitInFlight::Kind::kInput;
    unit.input = input_->next_unit(ready, kStepsMax);
    if (unit.input.steps.empty()) return;
    InputUnit message;
    message.steps = input_->steps_of(unit.input);
    const BatchIndex next_batch = input_->issued(unit.input);
    unit.first = leases_.at(unit.input.shards.front()).next_batch;
    for (const ShardId shard : unit.input.shards) leases_.at(shard).next_batch = next_batch;
    unit.leases = leases_of(unit.input.shards);
    message.leases = unit.leases;
    session.input_steps_in_flight += static_cast<std::uint32_t>(unit.input.steps.size());
    ledger_.send(id, session, std::move(unit), std::move(message));
  }
}

Result<void> Units::receive(SessionState& session, const InputResult& result) {
  const Result<UnitInFlight> taken = ledger_.take(session, result.unit, UnitInFlight::Kind::kInput);
  if (!taken) return taken.error();
  const UnitInFlight& unit = *taken;
  if (auto added = input_->add(unit.input, result.activations); !added) {
    ++sessions_.account(session).units_refused;
    return Error{added.error().code,
                 fmt::format("unit {}: {}", raw(result.unit), added.error().message)};
  }
  session.input_steps_in_flight -= static_cast<std::uint32_t>(unit.input.steps.size());
  session.last_answer = outbox_.now();
  ++sessions_.account(session).units;
  for (EncodeTask& task : input_->take_whole()) outbox_.push(WorkerTask(std::move(task)));
  return {};
}

Result<void> Units::receive(SessionId id, SessionState& session, PointsRequest& request) {
  // One that has given its last input shard back may still ask for what it would have needed next.
  if (!session.was_lent_input && !run_.map.is_wide()) {
    return protocol_error("it asks for examples, and was lent no input shard");
  }
  if (session.points_in_flight + request.points.size() > kPointsInFlightMax) {
    return protocol_error("it asks for examples faster than they can be read");
  }
  session.points_in_flight += request.points.size();
  outbox_.push(WorkerTask(ReadPointsTask{id, std::move(request)}));
  return {};
}

Result<void> Units::on(PointsRead& event) {
  SessionState* const session = sessions_.find(event.session);
  if (session == nullptr) return {};
  session->points_in_flight -= event.asked;
  if (!event.parts) return event.parts.error();
  for (Points& part : *event.parts) outbox_.send(event.session, std::move(part));
  return {};
}

}  // namespace gleaner

// Input shards that volunteers hold: their next steps, their answers, and the examples that they
// read.
#include <algorithm>
#include <utility>

#include "common/limits.hpp"
#include "master/core/session.hpp"
#include "master/core/units.hpp"

namespace gleaner {
namespace {

// Steps of a unit: few, so that activations do not wait for each other.
constexpr std::uint32_t kStepsMax = 8;
// Examples that are being read for one volunteer.
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
  // The lag bounds live steps, so that this limits replays only.
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
  // A volunteer that has given its last input shard back may still ask for the examples of its next
  // steps.
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

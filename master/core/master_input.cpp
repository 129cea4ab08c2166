// Input shards that volunteers hold: who does which steps next, their answers, and the points that
// they need.
#include <fmt/format.h>

#include <algorithm>

#include "common/limits.hpp"
#include "master/core/master_core.hpp"

namespace gleaner {
namespace {

// Steps of a unit: few, so that activations do not wait for each other.
constexpr std::uint32_t kStepsMax = 8;
// Points that are being read for one volunteer.
constexpr std::size_t kPointsInFlightMax = std::size_t{4} * kPointsPerRequestMax;

}  // namespace

void MasterCore::perform(WorkerTask task) {
  if (input_) {
    if (const auto* forward = std::get_if<ForwardTask>(&task)) return input_->push(*forward);
    if (const auto* score = std::get_if<EvalForwardTask>(&task)) return input_->push(*score);
    // The holders commit unasked, after a round's last update.
    if (std::holds_alternative<CommitInputTask>(task)) return;
    if (const auto* backward = std::get_if<BackwardTask>(&task)) input_->push(*backward);
  }
  effects_.emplace_back(std::move(task));
}

void MasterCore::begin_input(ShardId shard, SessionState& session, BatchIndex next_batch) {
  session.was_lent_input = true;
  input_->begin(shard, next_batch);
}

void MasterCore::issue_input_units(SessionId id, SessionState& session) {
  std::vector<ShardId> ready;
  for (const ShardId shard : held_by(id, Layer::kInput)) {
    if (leases_.at(shard).state == LeaseState::kReady) ready.push_back(shard);
  }
  // The lag bounds what is live; this only limits replays.
  const std::uint32_t in_flight_max = 2 * (model_.staleness + 1) + kStepsMax;
  while (session.input_steps_in_flight < in_flight_max) {
    UnitInFlight unit;
    unit.kind = UnitInFlight::Kind::kInput;
    unit.input = input_->next_unit(ready, kStepsMax);
    if (unit.input.steps.empty()) return;
    InputUnit message;
    message.steps = input_->steps_of(unit.input);
    const BatchIndex next_batch = input_->issued(unit.input);
    unit.first = leases_.at(unit.input.shards.front()).next_batch;
    for (const ShardId shard : unit.input.shards) {
      leases_.at(shard).next_batch = next_batch;
      message.leases.push_back({shard, leases_.at(shard).epoch});
    }
    unit.leases = message.leases;
    session.input_steps_in_flight += static_cast<std::uint32_t>(unit.input.steps.size());
    send_unit(id, session, std::move(unit), std::move(message));
  }
}

void MasterCore::on_message(SessionId id, SessionState& session, InputResult& result) {
  const auto found = session.units.find(result.unit);
  if (found == session.units.end() || found->second.kind != UnitInFlight::Kind::kInput) {
    refuse(id, ErrorCode::kProtocol, fmt::format("unit {} is not out", raw(result.unit)), false);
    return;
  }
  const UnitInFlight unit = found->second;
  session.units.erase(found);
  if (auto added = input_->add(unit.input, result.activations); !added) {
    ++account(session).units_refused;
    refuse(id, added.error().code,
           fmt::format("unit {}: {}", raw(result.unit), added.error().message), false);
    return;
  }
  session.input_steps_in_flight -= static_cast<std::uint32_t>(unit.input.steps.size());
  session.last_progress = session.last_answer = now_;
  ++account(session).units;
  for (EncodeTask& task : input_->take_whole()) effects_.emplace_back(WorkerTask(std::move(task)));
}

void MasterCore::on_message(SessionId id, SessionState& session, PointsRequest& request) {
  // One that has given its last input shard back may still ask for what it would have needed next.
  if (!session.was_lent_input) {
    refuse(id, ErrorCode::kProtocol, "it asks for points, and was lent no input shard", false);
    return;
  }
  if (session.points_in_flight + request.points.size() > kPointsInFlightMax) {
    refuse(id, ErrorCode::kProtocol, "it asks for points faster than they can be read", false);
    return;
  }
  session.points_in_flight += request.points.size();
  effects_.emplace_back(WorkerTask(ReadPointsTask{id, std::move(request)}));
}

void MasterCore::on(PointsRead& event) {
  const auto found = sessions_.find(event.session);
  if (found == sessions_.end()) return;
  found->second.points_in_flight -= event.asked;
  if (!event.parts) {
    refuse(event.session, event.parts.error().code, event.parts.error().message, false);
    return;
  }
  for (Points& part : *event.parts) say(event.session, std::move(part));
}

}  // namespace gleaner

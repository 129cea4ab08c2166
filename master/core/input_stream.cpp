#include "master/core/input_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/limits.hpp"
#include "common/work/input_parts.hpp"
#include "master/core/session.hpp"
#include "master/core/units.hpp"

namespace gleaner {
namespace {

// Steps of a unit: few, so that activations do not wait for each other.
constexpr std::uint32_t kStepsMax = 8;
// Examples that are being read for one volunteer.
constexpr std::size_t kPointsInFlightMax = std::size_t{4} * kPointsPerRequestMax;

}  // namespace

using Kind = InputStep::Kind;

InputStream::InputStream(const RunPlan& plan, const ShardMap& map, BatchIndex next_batch)
    : plan_(plan), map_(map), before_(next_batch), cursors_(map.input_shards(), 0) {}

InputStream::Step& InputStream::push(Kind kind, std::uint64_t index, std::uint32_t examples) {
  Step& step = steps_.emplace_back();
  step.kind = kind;
  step.index = index;
  step.examples = examples;
  step.before = before_;
  if (kind != Kind::kBackward) step.known.resize(map_.input_shards());
  return step;
}

void InputStream::push(const ForwardTask& task) {
  push(Kind::kForward, task.batch, plan_.examples_in(task.batch));
}

void InputStream::push(const BackwardTask& task) {
  GLEANER_CHECK(task.batch == before_);
  push(Kind::kBackward, task.batch, plan_.examples_in(task.batch)).rate = task.rate;
  ++before_;
}

void InputStream::push(const EvalForwardTask& task) {
  push(Kind::kScore, task.begin, static_cast<std::uint32_t>(task.end - task.begin));
}

void InputStream::gradients_ready(BatchIndex batch, std::vector<SharedBytes> packed) {
  const auto step = std::find_if(steps_.rbegin(), steps_.rend(), [&](const Step& s) {
    return s.kind == Kind::kBackward && s.index == batch;
  });
  GLEANER_CHECK(step != steps_.rend() && packed.size() == map_.input_shards());
  step->gradients = std::move(packed);
}

void InputStream::begin(ShardId shard, BatchIndex next_batch) {
  const auto step = std::find_if(steps_.begin(), steps_.end(),
                                 [&](const Step& s) { return s.before >= next_batch; });
  cursors_[place(shard)] = first_ + static_cast<std::uint64_t>(step - steps_.begin());
}

bool InputStream::needs(std::uint32_t place, const Step& step) {
  return step.kind == Kind::kBackward || step.known[place] == 0;
}

std::uint64_t InputStream::next_step(std::uint32_t place, std::uint64_t cursor) const {
  while (cursor < end() && !needs(place, at(cursor))) ++cursor;
  return cursor;
}

InputStream::Unit InputStream::next_unit(std::span<const ShardId> ready,
                                         std::uint32_t steps_max) const {
  Unit unit;
  std::uint64_t first = end();
  for (const ShardId shard : ready) {
    const std::uint64_t next = next_step(place(shard), cursors_[place(shard)]);
    if (next > first || next == end()) continue;
    if (next < first) unit.shards.clear();
    first = next;
    unit.shards.push_back(shard);
  }
  std::uint64_t cells = 0;
  for (std::uint64_t number = first; number < end() && unit.steps.size() < steps_max; ++number) {
    const Step& step = at(number);
    const auto needing = std::count_if(unit.shards.begin(), unit.shards.end(),
                                       [&](ShardId s) { return needs(place(s), step); });
    if (needing == 0) continue;
    // A step that only some of these shards need is for a unit of their own.
    if (needing != std::ssize(unit.shards)) break;
    if (step.kind == Kind::kBackward && step.gradients.empty()) break;
    cells += std::uint64_t{step.examples} * map_.hidden();
    if (!unit.steps.empty() && cells > kUnitCellsMax) break;
    unit.steps.push_back(number);
  }
  return unit;
}

BatchIndex InputStream::issued(const Unit& unit) {
  for (const ShardId shard : unit.shards) cursors_[place(shard)] = unit.steps.back() + 1;
  const Step& last = at(unit.steps.back());
  return last.before + (last.kind == Kind::kBackward ? 1 : 0);
}

std::vector<InputStep> InputStream::steps_of(const Unit& unit) const {
  std::vector<InputStep> steps;
  for (const std::uint64_t number : unit.steps) {
    const Step& step = at(number);
    InputStep& out =
        steps.emplace_back(InputStep{step.kind, step.index, step.examples, step.rate, {}});
    if (step.kind != Kind::kBackward) continue;
    for (const ShardId shard : unit.shards) out.gradients.push_back(step.gradients[place(shard)]);
  }
  return steps;
}

Result<void> InputStream::add(const Unit& unit, const std::vector<Bytes>& activations) {
  std::vector<Step*> asked;
  for (const std::uint64_t number : unit.steps) {
    // While a unit is out, its shards stay with their holder and the round of its steps stays open.
    GLEANER_CHECK(number >= first_ && number < end());
    Step& step = steps_[number - first_];
    if (step.kind != Kind::kBackward) asked.push_back(&step);
  }
  if (activations.size() != asked.size() * unit.shards.size()) {
    return Error{ErrorCode::kProtocol,
                 fmt::format("activations of {} steps and shards, expected {}", activations.size(),
                             asked.size() * unit.shards.size())};
  }
  auto next = activations.begin();
  for (Step* step : asked) {
    step->activations.resize(std::size_t{step->examples} * map_.hidden());
    for (const ShardId shard : unit.shards) {
      const NeuronRange units = map_.neurons(shard);
      if (auto unpacked = unpack_activations(*next++, step->examples, map_.hidden(),
                                             {units.begin, units.size()}, step->activations);
          !unpacked) {
        return unpacked;
      }
    }
  }
  // Only now: a refused message counts for nothing.
  for (Step* step : asked) {
    for (const ShardId shard : unit.shards) {
      GLEANER_CHECK(step->known[place(shard)] == 0);
      step->known[place(shard)] = 1;
      ++step->known_count;
    }
  }
  return {};
}

std::uint64_t InputStream::next_asked(std::uint64_t step) const {
  while (step < end() && at(step).kind == Kind::kBackward) ++step;
  return step;
}

std::vector<EncodeTask> InputStream::take_whole() {
  std::vector<EncodeTask> tasks;
  for (; (taken_ = next_asked(taken_)) < end(); ++taken_) {
    Step& step = steps_[taken_ - first_];
    if (step.known_count < map_.input_shards()) break;
    tasks.push_back({step.kind == Kind::kScore, step.index, step.index + step.examples,
                     std::make_shared<std::vector<float>>(std::move(step.activations))});
  }
  return tasks;
}

std::optional<InputStream::Missing> InputStream::missing() const {
  const std::uint64_t first = next_asked(taken_);
  if (first == end()) return std::nullopt;
  const Step& step = at(first);
  Missing missing{step.kind, step.index, {}};
  for (std::uint32_t i = 0; i < map_.input_shards(); ++i) {
    if (step.known[i] == 0) missing.shards.push_back(map_.input_shard(i));
  }
  return missing;
}

void InputStream::forget_before(BatchIndex batch) {
  taken_ = next_asked(taken_);
  while (!steps_.empty() && steps_.front().before < batch && first_ < taken_) {
    steps_.pop_front();
    ++first_;
  }
}

// Input shards that volunteers hold: their next steps, their answers, and the examples that they
// read.
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

#include "master/core/input_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/limits.hpp"
#include "common/work/input_parts.hpp"

namespace gleaner {

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

}  // namespace gleaner

#include "volunteer/input_work.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/limits.hpp"

namespace gleaner::volunteer {
namespace {

// Batches beyond those that are to be done whose points are asked for already.
constexpr BatchIndex kBatchesAhead = 8;
// Pieces of work: more than a master within its limits ever has out with one volunteer.
constexpr std::size_t kWaitingMax = 1024;
static_assert(kWaitingMax > 2 * (kStalenessMax + 1) + kStepsPerUnitMax + kInputShardsMax);

}  // namespace

std::vector<OfferedShard> InputWork::begin(const ModelConfig& model, std::uint64_t test_fingerprint,
                                           std::optional<RoundIndex> checkpoint) {
  waiting_.clear();
  forward_end_ = 0;
  if (!checkpoint || model_ != model) trainer_.reset();
  model_ = model;
  plan_ = std::make_unique<RunPlan>(model_);
  points_.begin(model_.data_fingerprint, test_fingerprint, model_.seed);
  return trainer_ ? trainer_->step_back(*checkpoint) : std::vector<OfferedShard>{};
}

void InputWork::clear() {
  trainer_.reset();
  waiting_.clear();
  forward_end_ = 0;
  points_.clear();
}

InputTrainer& InputWork::trainer() {
  if (!trainer_) trainer_ = std::make_unique<InputTrainer>(model_, pool_);
  return *trainer_;
}

Result<std::vector<Message>> InputWork::wait(std::variant<InputUnit, ReleaseRequest> work) {
  if (waiting_.size() >= kWaitingMax) {
    return Error{ErrorCode::kBusy,
                 fmt::format("the master sends units and not the examples that they need: {} wait",
                             waiting_.size())};
  }
  waiting_.push_back(std::move(work));
  return go_on();
}

Result<std::vector<Message>> InputWork::run(const InputUnit& unit) {
  if (auto checked = trainer().check_steps(unit); !checked) return checked.error();
  return wait(unit);
}

Result<std::vector<Message>> InputWork::run(const Points& points) {
  if (auto added = points_.add(points); !added) return added.error();
  return go_on();
}

Result<std::vector<Message>> InputWork::run(const ReleaseRequest& release) {
  return wait(release);
}

Result<std::vector<Message>> InputWork::go_on() {
  std::vector<Message> replies;
  for (; !waiting_.empty(); waiting_.pop_front()) {
    if (const auto* release = std::get_if<ReleaseRequest>(&waiting_.front())) {
      auto parts = trainer().hand_over(release->lease);
      if (!parts) return parts.error();
      for (HandOver& part : *parts) replies.emplace_back(std::move(part));
      continue;
    }
    const Result<bool> done = run_unit(std::get<InputUnit>(waiting_.front()), replies);
    if (!done) return done.error();
    if (!*done) break;
  }
  ask(replies);
  return replies;
}

InputWork::Wanted InputWork::wanted(const InputStep& step) const {
  if (step.kind != InputStep::Kind::kScore) {
    return {PointSet::kTraining, plan_->points_of(step.index)};
  }
  Wanted wanted{PointSet::kHeldOut, std::vector<std::uint64_t>(step.examples)};
  std::iota(wanted.points.begin(), wanted.points.end(), step.index);
  return wanted;
}

Result<bool> InputWork::run_unit(const InputUnit& unit, std::vector<Message>& replies) {
  if (auto checked = trainer().check(unit); !checked) return checked.error();
  // All of them before the first step: a unit is done whole or not at all.
  std::vector<Wanted> points;
  for (const InputStep& step : unit.steps) {
    points.push_back(wanted(step));
    if (!points_.has_all(points.back().set, points.back().points)) return false;
  }
  std::vector<PointBatch> batches;
  std::vector<std::span<const ExampleView>> examples;
  for (const Wanted& some : points) {
    std::optional<PointBatch> batch = points_.read(some.set, some.points);
    if (!batch) return false;
    batches.push_back(std::move(*batch));
    examples.emplace_back(batches.back().examples);
  }
  const WorkTimer timer(pool_.gate());
  auto outcome = trainer().run(unit, examples);
  if (!outcome) return outcome.error();
  outcome->result.compute_us = timer.elapsed_us();
  // The result before the commits: a round must not look whole while its batches are awaited.
  replies.emplace_back(std::move(outcome->result));
  for (ShardCommit& commit : outcome->commits) replies.emplace_back(std::move(commit));
  for (std::size_t s = 0; s < unit.steps.size(); ++s) {
    if (unit.steps[s].kind == InputStep::Kind::kForward) {
      forward_end_ = std::max(forward_end_, unit.steps[s].index + 1);
      continue;  // the update will need them again
    }
    points_.release(points[s].set, points[s].points);
  }
  return true;
}

void InputWork::ask(std::vector<Message>& replies) {
  const auto ask_for = [&](const Wanted& wanted) {
    while (auto request = points_.request(wanted.set, wanted.points)) {
      replies.emplace_back(std::move(*request));
    }
  };
  BatchIndex ahead = forward_end_;
  for (const auto& work : waiting_) {
    const auto* unit = std::get_if<InputUnit>(&work);
    if (unit == nullptr) continue;
    for (const InputStep& step : unit->steps) {
      ask_for(wanted(step));
      if (step.kind == InputStep::Kind::kForward) ahead = std::max(ahead, step.index + 1);
    }
  }
  if (ahead == 0) return;
  const BatchIndex end = std::min(ahead + kBatchesAhead, plan_->batch_count());
  for (; ahead < end; ++ahead) ask_for({PointSet::kTraining, plan_->points_of(ahead)});
}

}  // namespace gleaner::volunteer

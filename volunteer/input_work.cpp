#include "volunteer/input_work.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/limits.hpp"

namespace gleaner::volunteer {
namespace {

// Batches ahead of the next work whose examples are requested.
constexpr BatchIndex kInputBatchesAhead = 8;
// More pieces of work than a master within its limits has out with one volunteer.
constexpr std::size_t kWaitingMax = 1024;
static_assert(kWaitingMax > 2 * (kStalenessMax + 1) + kStepsPerUnitMax + kInputShardsMax);

}  // namespace

std::vector<OfferedShard> InputWork::begin(const ModelConfig& model,
                                           std::optional<RoundIndex> checkpoint) {
  waiting_.clear();
  forward_end_ = 0;
  if (!checkpoint || model_ != model) input_.reset();
  model_ = model;
  plan_ = std::make_unique<RunPlan>(model_);
  return input_ ? input_->step_back(*checkpoint) : std::vector<OfferedShard>{};
}

void InputWork::clear() {
  input_.reset();
  waiting_.clear();
  forward_end_ = 0;
}

InputTrainer& InputWork::input() {
  if (!input_) input_ = std::make_unique<InputTrainer>(model_, pool_);
  return *input_;
}

Result<std::vector<Message>> InputWork::wait(Piece piece) {
  if (waiting_.size() >= kWaitingMax) {
    return Error{ErrorCode::kBusy,
                 fmt::format("the master sends units and not the examples that they need: {} wait",
                             waiting_.size())};
  }
  waiting_.push_back(std::move(piece));
  return go_on();
}

Result<std::vector<Message>> InputWork::run(const InputUnit& unit) {
  if (auto checked = input().check_steps(unit); !checked) return checked.error();
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
    const Result<bool> done =
        std::visit([&](const auto& piece) { return run_piece(piece, replies); }, waiting_.front());
    if (!done) return done.error();
    if (!*done) break;
  }
  ask(replies);
  return replies;
}

std::vector<WantedPoints> InputWork::wanted(const InputUnit& unit) const {
  std::vector<WantedPoints> wanted;
  for (const InputStep& step : unit.steps) {
    if (step.kind != InputStep::Kind::kScore) {
      wanted.push_back({PointSet::kTraining, plan_->points_of(step.index)});
      continue;
    }
    WantedPoints& held_out = wanted.emplace_back();
    held_out.set = PointSet::kTestSet;
    held_out.points.resize(step.examples);
    std::iota(held_out.points.begin(), held_out.points.end(), step.index);
  }
  return wanted;
}

std::optional<InputWork::Fetched> InputWork::fetch(std::span<const WantedPoints> wanted) {
  for (const WantedPoints& some : wanted) {
    if (!points_.has_all(some.set, some.points)) return std::nullopt;
  }
  Fetched fetched;
  for (const WantedPoints& some : wanted) {
    std::optional<ExampleBatch> batch = points_.read(some.set, some.points);
    if (!batch) return std::nullopt;
    fetched.batches.push_back(std::move(*batch));
    fetched.examples.emplace_back(fetched.batches.back().examples);
  }
  return fetched;
}

Result<bool> InputWork::run_piece(const ReleaseRequest& release, std::vector<Message>& replies) {
  auto parts = input().hand_over(release.lease);
  if (!parts) return parts.error();
  for (HandOver& part : *parts) replies.emplace_back(std::move(part));
  return true;
}

Result<bool> InputWork::run_piece(const InputUnit& unit, std::vector<Message>& replies) {
  if (auto checked = input().check(unit); !checked) return checked.error();
  const std::vector<WantedPoints> points = wanted(unit);
  const std::optional<Fetched> fetched = fetch(points);
  if (!fetched) return false;
  const WorkTimer timer(pool_.gate());
  auto outcome = input().run(unit, fetched->examples);
  if (!outcome) return outcome.error();
  outcome->result.compute_us = timer.elapsed_us();
  // The result leaves before the commits: a round must not look whole while its batches are
  // unanswered.
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
  const auto ask_for = [&](const WantedPoints& wanted) {
    while (auto request = points_.request(wanted.set, wanted.points)) {
      replies.emplace_back(std::move(*request));
    }
  };
  BatchIndex ahead = forward_end_;
  for (const Piece& piece : waiting_) {
    const auto* unit = std::get_if<InputUnit>(&piece);
    if (unit == nullptr) continue;
    for (const WantedPoints& some : wanted(*unit)) ask_for(some);
    for (const InputStep& step : unit->steps) {
      if (step.kind == InputStep::Kind::kForward) ahead = std::max(ahead, step.index + 1);
    }
  }
  if (ahead == 0) return;
  const BatchIndex end = std::min(ahead + kInputBatchesAhead, plan_->batch_count());
  for (; ahead < end; ++ahead) ask_for(WantedPoints{PointSet::kTraining, plan_->points_of(ahead)});
}

}  // namespace gleaner::volunteer

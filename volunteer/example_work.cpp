#include "volunteer/example_work.hpp"

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

std::vector<OfferedShard> ExampleWork::begin(const ModelConfig& model,
                                             std::uint64_t test_fingerprint,
                                             std::optional<RoundIndex> checkpoint) {
  waiting_.clear();
  forward_end_ = 0;
  if (!checkpoint || model_ != model) {
    input_.reset();
    wide_.reset();
  }
  model_ = model;
  plan_ = std::make_unique<RunPlan>(model_);
  points_.begin(model_.data_fingerprint, test_fingerprint, model_.seed);
  if (input_) return input_->step_back(*checkpoint);
  return wide_ ? wide_->step_back(*checkpoint) : std::vector<OfferedShard>{};
}

void ExampleWork::clear() {
  input_.reset();
  wide_.reset();
  waiting_.clear();
  forward_end_ = 0;
  points_.clear();
}

InputTrainer& ExampleWork::input() {
  if (!input_) input_ = std::make_unique<InputTrainer>(model_, pool_);
  return *input_;
}

WideTrainer& ExampleWork::wide() {
  if (!wide_) wide_ = std::make_unique<WideTrainer>(model_, pool_);
  return *wide_;
}

Result<std::vector<Message>> ExampleWork::wait(Piece piece) {
  if (waiting_.size() >= kWaitingMax) {
    return Error{ErrorCode::kBusy,
                 fmt::format("the master sends units and not the examples that they need: {} wait",
                             waiting_.size())};
  }
  waiting_.push_back(std::move(piece));
  return go_on();
}

Result<std::vector<Message>> ExampleWork::run(const InputUnit& unit) {
  if (auto checked = input().check_steps(unit); !checked) return checked.error();
  return wait(unit);
}

Result<std::vector<Message>> ExampleWork::run(const TrainUnit& unit) {
  if (auto checked = wide().check(unit); !checked) return checked.error();
  return wait(unit);
}

Result<std::vector<Message>> ExampleWork::run(const EvalUnit& unit) {
  if (auto checked = wide().check(unit); !checked) return checked.error();
  return wait(unit);
}

Result<std::vector<Message>> ExampleWork::run(const Points& points) {
  if (auto added = points_.add(points); !added) return added.error();
  return go_on();
}

Result<std::vector<Message>> ExampleWork::run(const ReleaseRequest& release) {
  return wait(release);
}

Result<std::vector<Message>> ExampleWork::go_on() {
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

ExampleWork::Wanted ExampleWork::held_out(std::uint64_t first, std::uint64_t count) const {
  Wanted wanted{PointSet::kTestSet, std::vector<std::uint64_t>(count)};
  std::iota(wanted.points.begin(), wanted.points.end(), first);
  return wanted;
}

std::vector<ExampleWork::Wanted> ExampleWork::wanted(const Piece& piece) const {
  std::vector<Wanted> wanted;
  if (const auto* unit = std::get_if<InputUnit>(&piece)) {
    for (const InputStep& step : unit->steps) {
      wanted.push_back(step.kind == InputStep::Kind::kScore
                           ? held_out(step.index, step.examples)
                           : Wanted{PointSet::kTraining, plan_->points_of(step.index)});
    }
  } else if (const auto* train = std::get_if<TrainUnit>(&piece)) {
    for (const UnitBatch& batch : train->batches) {
      wanted.push_back({PointSet::kTraining, plan_->points_of(batch.batch)});
    }
  } else if (const auto* evaluate = std::get_if<EvalUnit>(&piece)) {
    wanted.push_back(held_out(evaluate->first, *wide_->check(*evaluate)));
  }
  return wanted;
}

std::optional<ExampleWork::Fetched> ExampleWork::fetch(std::span<const Wanted> wanted) {
  for (const Wanted& some : wanted) {
    if (!points_.has_all(some.set, some.points)) return std::nullopt;
  }
  Fetched fetched;
  for (const Wanted& some : wanted) {
    std::optional<ExampleBatch> batch = points_.read(some.set, some.points);
    if (!batch) return std::nullopt;
    fetched.batches.push_back(std::move(*batch));
    fetched.examples.emplace_back(fetched.batches.back().examples);
  }
  return fetched;
}

Result<bool> ExampleWork::run_piece(const ReleaseRequest& release, std::vector<Message>& replies) {
  auto parts = input().hand_over(release.lease);
  if (!parts) return parts.error();
  for (HandOver& part : *parts) replies.emplace_back(std::move(part));
  return true;
}

Result<bool> ExampleWork::run_piece(const InputUnit& unit, std::vector<Message>& replies) {
  if (auto checked = input().check(unit); !checked) return checked.error();
  const std::vector<Wanted> points = wanted(unit);
  const std::optional<Fetched> fetched = fetch(points);
  if (!fetched) return false;
  const WorkTimer timer(pool_.gate());
  auto outcome = input().run(unit, fetched->examples);
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

Result<bool> ExampleWork::run_piece(const TrainUnit& unit, std::vector<Message>& replies) {
  const std::vector<Wanted> points = wanted(unit);
  const std::optional<Fetched> fetched = fetch(points);
  if (!fetched) return false;
  const WorkTimer timer(pool_.gate());
  auto outcome = wide().train(unit, fetched->examples);
  if (!outcome) return outcome.error();
  outcome->result.compute_us = timer.elapsed_us();
  replies.emplace_back(std::move(outcome->result));
  for (ShardCommit& commit : outcome->commits) replies.emplace_back(std::move(commit));
  forward_end_ = std::max(forward_end_, unit.batches.back().batch + 1);
  for (const Wanted& some : points) points_.release(some.set, some.points);
  return true;
}

Result<bool> ExampleWork::run_piece(const EvalUnit& unit, std::vector<Message>& replies) {
  const std::vector<Wanted> points = wanted(unit);
  const std::optional<Fetched> fetched = fetch(points);
  if (!fetched) return false;
  const WorkTimer timer(pool_.gate());
  auto result = wide().evaluate(unit, fetched->examples.front());
  if (!result) return result.error();
  result->compute_us = timer.elapsed_us();
  replies.emplace_back(std::move(*result));
  for (const Wanted& some : points) points_.release(some.set, some.points);
  return true;
}

void ExampleWork::ask(std::vector<Message>& replies) {
  const auto ask_for = [&](const Wanted& wanted) {
    while (auto request = points_.request(wanted.set, wanted.points)) {
      replies.emplace_back(std::move(*request));
    }
  };
  BatchIndex ahead = forward_end_;
  for (const Piece& piece : waiting_) {
    for (const Wanted& some : wanted(piece)) ask_for(some);
    if (const auto* unit = std::get_if<InputUnit>(&piece)) {
      for (const InputStep& step : unit->steps) {
        if (step.kind == InputStep::Kind::kForward) ahead = std::max(ahead, step.index + 1);
      }
    } else if (const auto* train = std::get_if<TrainUnit>(&piece)) {
      ahead = std::max(ahead, train->batches.back().batch + 1);
    }
  }
  if (ahead == 0) return;
  const BatchIndex end = std::min(ahead + kBatchesAhead, plan_->batch_count());
  for (; ahead < end; ++ahead) ask_for({PointSet::kTraining, plan_->points_of(ahead)});
}

}  // namespace gleaner::volunteer

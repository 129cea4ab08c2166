#include "common/model/run_plan.hpp"

#include <algorithm>
#include <utility>

#include "common/result.hpp"

namespace gleaner {

Permutation test_order(std::uint64_t points, std::uint64_t seed) {
  return {std::max<std::uint64_t>(points, 1), counter_random(seed, Purpose::kSplit)};
}

RunPlan::RunPlan(const ModelConfig& config, std::vector<BatchIndex> rate_cuts)
    : seed_(config.seed),
      points_(config.points),
      batch_examples_(config.batch_examples),
      round_batches_(config.round_batches),
      staleness_(config.staleness),
      staleness_rise_(config.staleness_rise),
      is_wide_(is_wide(config)),
      epochs_(config.epochs),
      rehash_batches_(config.rehash_batches),
      warmup_batches_(config.warmup_batches),
      initial_rates_{config.input_rate, config.output_rate},
      rate_decay_(config.rate_decay),
      rate_cuts_(std::move(rate_cuts)),
      batches_per_epoch_(gleaner::batches_per_epoch(config)),
      epochs_per_span_(epochs_per_round(config)),
      rounds_per_span_(
          static_cast<RoundIndex>((span_batches() + round_batches_ - 1) / round_batches_)) {
  GLEANER_CHECK(points_ >= 1 && epochs_ % epochs_per_span_ == 0);
}

std::uint32_t RunPlan::epoch_of(BatchIndex batch) const {
  return static_cast<std::uint32_t>(batch / batches_per_epoch_);
}

RoundIndex RunPlan::round_of(BatchIndex batch) const {
  const std::uint64_t span = epoch_of(batch) / epochs_per_span_;
  const std::uint64_t in_span = batch - span * span_batches();
  return static_cast<RoundIndex>(span * rounds_per_span_ + in_span / round_batches_);
}

BatchIndex RunPlan::round_begin(RoundIndex round) const {
  const std::uint64_t span = round / rounds_per_span_;
  return span * span_batches() + std::uint64_t{round % rounds_per_span_} * round_batches_;
}

bool RunPlan::is_round_end(BatchIndex next_batch) const {
  return next_batch == round_begin(round_of(next_batch));
}

bool RunPlan::ends_epoch(RoundIndex round) const {
  return round_end(round) % batches_per_epoch_ == 0;
}

RoundIndex RunPlan::rounds_open() const {
  return is_wide_ ? 1 + std::max(1U, staleness_) : kRoundsOpenMax;
}

std::uint32_t RunPlan::epochs_done(RoundIndex checkpoint) const {
  return epoch_of(round_begin(checkpoint));
}

bool RunPlan::evaluates_at(RoundIndex checkpoint, std::uint32_t every_epochs) const {
  if (checkpoint == 0 || checkpoint >= round_count()) return checkpoint == round_count();
  return every_epochs > 0 &&
         epochs_done(checkpoint) / every_epochs > epochs_done(checkpoint - 1) / every_epochs;
}

std::uint32_t RunPlan::lag(BatchIndex batch) const {
  if (staleness_rise_ == 0) return staleness_;
  const std::uint64_t risen = 1 + batch / staleness_rise_;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(staleness_, risen));
}

BatchIndex RunPlan::applied_before(BatchIndex batch) const {
  const RoundIndex round = round_of(batch);
  const BatchIndex begin = round_begin(round);
  const std::uint32_t lag = this->lag(batch);
  return batch - begin > lag ? batch - lag : begin;
}

bool RunPlan::rehashes_after(BatchIndex batch) const {
  return (batch + 1) % rehash_batches_ == 0 || is_round_end(batch + 1);
}

LearningRates RunPlan::rates(BatchIndex batch) const {
  // Repeated multiplication in double: the same bits everywhere, unlike std::pow.
  double factor = 1.0;
  for (std::uint32_t epoch = epoch_of(batch); epoch > 0; --epoch) factor *= rate_decay_;
  if (batch < warmup_batches_) {
    factor *= static_cast<double>(batch + 1) / static_cast<double>(warmup_batches_);
  }
  for (const BatchIndex cut : rate_cuts_) {
    if (cut <= batch) factor *= 0.5;
  }
  return {static_cast<float>(initial_rates_.input * factor),
          static_cast<float>(initial_rates_.output * factor)};
}

std::uint32_t RunPlan::examples_in(BatchIndex batch) const {
  const std::uint64_t first = batch % batches_per_epoch_ * batch_examples_;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(batch_examples_, points_ - first));
}

std::vector<std::uint64_t> RunPlan::points_of(BatchIndex batch) const {
  const Permutation order(points_, counter_random(seed_, Purpose::kExampleOrder, epoch_of(batch)));
  const std::uint64_t first = batch % batches_per_epoch_ * batch_examples_;
  std::vector<std::uint64_t> points(examples_in(batch));
  for (std::size_t i = 0; i < points.size(); ++i) points[i] = order.forward(first + i);
  return points;
}

std::optional<Schedule::Step> Schedule::next(BatchIndex forward_end) const {
  if (owes_commit_) return Step{Kind::kCommit, plan_->round_of(backward_ - 1)};
  // All forward passes that the updates so far allow precede the next update.
  if (forward_ < std::min(forward_end, plan_->batch_count()) &&
      plan_->applied_before(forward_) <= backward_) {
    return Step{Kind::kForward, forward_};
  }
  if (backward_ < forward_) return Step{Kind::kBackward, backward_};
  return std::nullopt;
}

void Schedule::advance(BatchIndex forward_end) {
  const std::optional<Step> step = next(forward_end);
  GLEANER_CHECK(step.has_value());
  switch (step->kind) {
    case Kind::kForward:
      ++forward_;
      break;
    case Kind::kBackward:
      ++backward_;
      owes_commit_ = plan_->is_round_end(backward_);
      break;
    case Kind::kCommit:
      owes_commit_ = false;
      break;
  }
}

}  // namespace gleaner

#include "common/model/schedule.hpp"

#include <algorithm>

#include "common/check.hpp"

namespace gleaner {

std::optional<Schedule::Step> Schedule::next(BatchIndex forward_end) const {
  if (owes_commit_) return Step{Kind::kCommit, plan_->round_of(backward_ - 1)};
  // Every forward pass that the updates so far allow comes before the next update.
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

#include "master/shell/storage_queue.hpp"

#include <iterator>
#include <variant>

#include "common/result.hpp"

namespace gleaner {
namespace {

// A step of a fold takes a few milliseconds, another task about one. The fold gets at least a
// quarter of the time.
constexpr std::size_t kInBetweenMax = 8;

bool may_go_between(const StorageTask& task) {
  return std::holds_alternative<StageTask>(task) || std::holds_alternative<SettleTask>(task) ||
         std::holds_alternative<ReadChunkTask>(task);
}

}  // namespace

std::shared_ptr<const StorageTask> StorageQueue::next() {
  GLEANER_CHECK(!tasks_.empty());
  if (!is_chosen_) {
    const bool has_other = tasks_.size() > 1 && may_go_between(*tasks_[1]);
    const bool goes_between = has_begun_ && has_other && in_between_ < kInBetweenMax;
    chosen_ = goes_between ? 1 : 0;
    in_between_ = goes_between ? in_between_ + 1 : 0;
    is_chosen_ = true;
  }
  return tasks_[chosen_];
}

void StorageQueue::done() {
  GLEANER_CHECK(is_chosen_);
  tasks_.erase(std::next(tasks_.begin(), static_cast<std::ptrdiff_t>(chosen_)));
  if (chosen_ == 0) has_begun_ = false;
  is_chosen_ = false;
}

void StorageQueue::stepped() {
  GLEANER_CHECK(is_chosen_ && chosen_ == 0);
  has_begun_ = true;
  is_chosen_ = false;
}

}  // namespace gleaner

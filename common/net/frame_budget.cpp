#include "common/net/frame_budget.hpp"

#include <algorithm>
#include <utility>

namespace gleaner {

FrameBudget::Share::Share(FrameBudget* budget, std::function<void()> close)
    : budget_(budget), close_(std::move(close)) {}

void FrameBudget::Share::hold(std::size_t bytes) {
  if (budget_ == nullptr) return;
  FrameBudget& budget = *budget_;  // which this share may be taken out of
  budget.bytes_ += bytes - bytes_;
  bytes_ = bytes;
  if (bytes == 0) {
    budget.shares_.erase(this);
    return;
  }
  budget.shares_.insert(this);
  while (budget.bytes_ > budget.bytes_max_) budget.close_largest();
}

void FrameBudget::close_largest() {
  const auto largest = std::ranges::max_element(
      shares_, [](const Share* a, const Share* b) { return a->bytes_ < b->bytes_; });
  Share& share = **largest;
  bytes_ -= share.bytes_;
  share.bytes_ = 0;
  share.budget_ = nullptr;  // what it still reads is not kept
  shares_.erase(largest);
  share.close_();
}

}  // namespace gleaner

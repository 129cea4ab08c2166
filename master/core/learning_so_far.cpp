#include "master/core/learning_so_far.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gleaner {

std::string_view sign_name(Divergence::Sign sign) {
  return sign == Divergence::Sign::kLoss ? "loss" : "code_length";
}

std::string sentence(const Divergence& divergence) {
  if (divergence.sign == Divergence::Sign::kLoss) {
    return fmt::format("the loss rose to {:.4g} nats an example, from {:.4g}", divergence.value,
                       divergence.before);
  }
  return fmt::format("the quantized activations shrank to a length of {:.3g}, from {:.3g}",
                     divergence.value, divergence.before);
}

void CodeLengths::add(std::uint32_t examples, double mean_length) {
  sum_ += mean_length * examples;
  examples_ += examples;
  if (examples_ < kWindow) return;
  const double length = sum_ / static_cast<double>(examples_);
  sum_ = 0;
  examples_ = 0;
  if (!has_begun_ && length < kWeakBelow * longest_before_) {
    weak_start_ = Divergence{Divergence::Sign::kCodeLength, length, longest_before_};
  }
  has_begun_ = true;
  if (length * kFallMax < longest_ && (!collapse_ || length < collapse_->value)) {
    collapse_ = Divergence{Divergence::Sign::kCodeLength, length, longest_};
  }
  longest_ = std::max(longest_, length);
}

}  // namespace gleaner

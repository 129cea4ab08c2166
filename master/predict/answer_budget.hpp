// How much of a processor answers may take: a fraction of one over time, and what was saved up of
// it at once. Pure; time arrives as an argument.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "common/time.hpp"

namespace gleaner {

struct AnswerLimits {
  double processor_fraction = std::numeric_limits<double>::infinity();
  double seconds_saved_max = 0;                                      // of processor
  std::size_t inputs_max = std::numeric_limits<std::size_t>::max();  // of one question
  std::size_t requests_waiting_max = 32;                             // further ones are refused

  [[nodiscard]] bool is_bounded() const { return std::isfinite(processor_fraction); }
};

// Invariant: within any time T, what is begun has used at most fraction * T + what may be saved up,
// but for the one answer that went over it.
class AnswerBudget {
 public:
  explicit AnswerBudget(const AnswerLimits& limits)
      : limits_(limits), left_(limits.seconds_saved_max) {}

  void spend(double seconds, Instant now) {
    refill(now);
    left_ -= seconds;
  }

  [[nodiscard]] bool has_some(Instant now) {
    refill(now);
    return !limits_.is_bounded() || left_ > 0;
  }

  // Enough for what can wait, such as reading a newer checkpoint.
  [[nodiscard]] bool has_plenty(Instant now) {
    refill(now);
    return !limits_.is_bounded() || left_ >= limits_.seconds_saved_max / 2;
  }

  // Until has_some() is true, in whole seconds.
  [[nodiscard]] unsigned seconds_to_wait(Instant now) {
    if (has_some(now)) return 0;
    return 1 + static_cast<unsigned>(std::min(-left_ / limits_.processor_fraction, 1e6));
  }

 private:
  void refill(Instant now) {
    if (!limits_.is_bounded()) return;
    if (now > refilled_) {
      left_ = std::min(limits_.seconds_saved_max,
                       left_ + limits_.processor_fraction * seconds_in(now - refilled_));
    }
    refilled_ = std::max(refilled_, now);
  }

  const AnswerLimits limits_;
  double left_;
  Instant refilled_{};
};

}  // namespace gleaner

// How long to wait before trying again: exponential with jitter, so that a crowd of volunteers does
// not return in step. Pure: randomness comes from the caller.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/counter_random.hpp"
#include "common/time.hpp"

namespace gleaner {

class Backoff {
 public:
  // Delays double from `first` to `longest`; each is drawn from the upper half of its range.
  Backoff(Millis first, Millis longest, std::uint64_t seed)
      : first_(first), longest_(longest), random_(seed, Purpose::kBackoff) {}

  Millis next() {
    const std::int64_t ceiling =
        std::min(first_.count() << std::min(attempts_, 20u), longest_.count());
    ++attempts_;
    const std::int64_t floor = ceiling / 2;
    const auto jitter = static_cast<std::int64_t>(
        random_.next_below(static_cast<std::uint64_t>(ceiling - floor + 1)));
    return Millis(floor + jitter);
  }

  // After a success.
  void reset() { attempts_ = 0; }

  [[nodiscard]] std::uint32_t attempts() const { return attempts_; }

 private:
  Millis first_;
  Millis longest_;
  Rng random_;
  std::uint32_t attempts_ = 0;
};

}  // namespace gleaner

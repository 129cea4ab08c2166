// Keeps what passes below a rate, on average and within a frame: whoever wants to pass waits until
// what passed before has been paid for with time. Shared by all who are to stay below the rate
// together. One thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "common/check.hpp"
#include "common/time.hpp"

namespace gleaner {

class Pacer {
 public:
  explicit Pacer(std::uint64_t bytes_per_second) : rate_(bytes_per_second) {
    GLEANER_CHECK(rate_ > 0);
  }

  // When the next frame may begin; in the past: at once.
  [[nodiscard]] Instant ready() const { return paid_; }

  // `bytes` begin to pass at `now`. Time in which nothing passed is not saved up.
  void spend(std::size_t bytes, Instant now) {
    const auto micros = static_cast<std::int64_t>(bytes * 1'000'000 / rate_);
    paid_ = std::max(paid_, now) + Micros(micros);
  }

 private:
  std::uint64_t rate_;
  Instant paid_{};
};

// Null, which is no limit, for nothing.
inline std::shared_ptr<Pacer> make_pacer(std::optional<double> megabits_per_second) {
  if (!megabits_per_second) return nullptr;
  return std::make_shared<Pacer>(static_cast<std::uint64_t>(*megabits_per_second * 125'000));
}

}  // namespace gleaner

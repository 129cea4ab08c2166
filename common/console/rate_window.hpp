// How fast a count grows, over the last seconds. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "common/time.hpp"

namespace gleaner {

class RateWindow {
 public:
  explicit RateWindow(Millis window) : window_(window) {}

  // The count at `now`, which never goes back. A count that falls begins again.
  void add(Instant now, std::uint64_t count) {
    if (!samples_.empty() && count < samples_.back().count) samples_.clear();
    samples_.push_back({now, count});
    while (samples_.size() > 2 && now - samples_[1].at >= window_) samples_.pop_front();
  }

  // Nothing until a second of it has been seen.
  [[nodiscard]] std::optional<double> per_second() const {
    if (samples_.size() < 2) return std::nullopt;
    const Sample& first = samples_.front();
    const Sample& last = samples_.back();
    const double seconds = static_cast<double>((last.at - first.at).count()) / 1e6;
    if (seconds < 1) return std::nullopt;
    return static_cast<double>(last.count - first.count) / seconds;
  }

 private:
  struct Sample {
    Instant at;
    std::uint64_t count = 0;
  };

  const Micros window_;
  std::deque<Sample> samples_;
};

}  // namespace gleaner

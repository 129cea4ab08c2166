// From the core's snapshots to the console's. Speeds are measured here, over the last
// seconds of training: the core counts, it does not average. Time is a parameter. I/O thread only.
#pragma once

#include <cstdint>
#include <deque>

#include "common/time.hpp"
#include "master/console/eta.hpp"
#include "master/console/progress_events.hpp"
#include "master/core/events/records.hpp"

namespace gleaner {

class ProgressSource {
 public:
  // Call a few times a second with the core's present state.
  RunSnapshot snapshot(const CoreSnapshot& core, Instant now);

 private:
  struct Sample {
    Instant at;
    std::uint64_t examples = 0;
    std::uint64_t bytes_down = 0;
    std::uint64_t bytes_up = 0;
  };

  void measure(const CoreSnapshot& core, Instant now);

  Eta eta_;
  std::deque<Sample> samples_;  // of uninterrupted training, the latest last
  double examples_per_second_ = -1;
  double bytes_down_ = -1;
  double bytes_up_ = -1;
};

}  // namespace gleaner

// From what the core reports to what the console shows. Speeds are measured here, over the last
// seconds of training: the core counts, it does not average. Time is a parameter. I/O thread only.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "common/time.hpp"
#include "master/console/progress_events.hpp"
#include "master/core/events/events.hpp"
#include "master/core/events/records.hpp"

namespace gleaner {

// What the console needs to know of a run besides the core's reports.
struct RunShape {
  RoundIndex rounds = 0;
  std::uint32_t epochs = 0;
  std::uint64_t batches_per_epoch = 1;
  std::uint32_t batch_examples = 1;
};

class ProgressSource {
 public:
  explicit ProgressSource(RunShape shape) : shape_(shape) {}

  // Call a few times a second with the core's present state.
  RunSnapshot snapshot(const CoreSnapshot& core, Instant now);
  [[nodiscard]] RunEvent event(const Notice& notice) const;

 private:
  struct Sample {
    Instant at;
    std::uint64_t examples = 0;
    std::uint64_t bytes_down = 0;
    std::uint64_t bytes_up = 0;
  };

  void measure(const CoreSnapshot& core, Instant now);

  RunShape shape_;
  std::deque<Sample> samples_;  // of uninterrupted training, the latest last
  double examples_per_second_ = -1;
  double bytes_down_ = -1;
  double bytes_up_ = -1;
};

}  // namespace gleaner

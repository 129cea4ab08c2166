// Measures the speeds of a run over the last seconds of training from the core's counts. Time is a
// parameter. I/O thread only.
#pragma once

#include <cstdint>
#include <deque>

#include "common/time.hpp"
#include "master/see/eta.hpp"
#include "schema/tool_messages.hpp"

namespace gleaner {

class ProgressSource {
 public:
  // Fills in the speeds. To be called a few times a second with the core's counts.
  void complete(RunProgress& run, Instant now);

 private:
  struct Sample {
    Instant at;
    std::uint64_t examples = 0;
    std::uint64_t bytes_down = 0;
    std::uint64_t bytes_up = 0;
  };

  void measure(const RunProgress& run, Instant now);

  Eta eta_;
  std::deque<Sample> samples_;  // of uninterrupted training, the latest last
  double examples_per_second_ = -1;
  double bytes_down_ = -1;
  double bytes_up_ = -1;
};

}  // namespace gleaner

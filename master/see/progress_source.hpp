// Measures the speeds of a run over the last seconds of training from the core's counts. Time is a
// parameter. I/O thread only.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "common/time.hpp"
#include "schema/tool_messages.hpp"

namespace gleaner {

// Forecasts the end of a run from the times of its batches and evaluations so far. The time of a
// batch is an average over the last half of the training, at most ten minutes, and starts again
// when volunteers come or go. Time is a parameter. One thread.
class Eta {
 public:
  // To be called a few times a second with the core's state.
  void note(const RunProgress& run, Instant now);

  // Negative while too little is known.
  [[nodiscard]] double seconds(const RunProgress& run) const;

 private:
  // A moment of the training. Its clock stands still during evaluations, and while nobody is here.
  struct Mark {
    double trained = 0;  // seconds
    BatchIndex batch = 0;
  };

  void note_training(BatchIndex batch);

  std::optional<Instant> last_;
  RunStage stage_ = RunStage::kWaiting;  // at last_
  std::uint32_t volunteers_ = 0;
  std::optional<std::uint32_t> first_epoch_;
  double trained_ = 0;  // seconds
  double evaluating_ = 0;
  std::uint32_t evaluations_ = 0;  // that are over
  std::deque<Mark> marks_;         // the latest last
  double per_batch_ = -1;          // seconds
};

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

// Where a run's time goes: what it waited for, moment by moment, added up. The core says what it
// waits for now; here moments become seconds, over the whole life of the process and over the last
// minutes. Time is a parameter. One thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>

#include "common/model/run_plan.hpp"
#include "common/time.hpp"
#include "schema/messages.hpp"

namespace gleaner {

// The cause for which the run waits at one moment.
enum class TimeUse : std::uint8_t {
  kTraining,    // results of the batch at work, which are on their way: nothing is lost
  kMaster,      // the master's own arithmetic
  kLate,        // results that have been due for seconds
  kReplay,      // shards that are trained on batches that were trained before
  kMoving,      // shards that nobody holds, or that are loaded or handed over
  kCommit,      // commits at the end of a round
  kStore,       // folds, and room on the disk
  kEvaluation,  // scores of test examples
  kNobody,      // volunteers: too few are here
};
inline constexpr std::size_t kTimeUses = 9;

// A bounded label: "training", "late", …
std::string_view time_use_name(TimeUse use);
// The cause in words, for people.
std::string_view time_use_text(TimeUse use);

TimeUse time_use(const RunStatus& status, const RunPlan& plan);

class TimeSpent {
 public:
  using Seconds = std::array<double, kTimeUses>;
  // Length of "the last minutes".
  static constexpr Millis kRecent{300'000};

  // The run has been at `use` since the call before. A gap of more than a minute, in which nobody
  // could look, counts as nothing.
  void observe(TimeUse use, Instant now);

  [[nodiscard]] const Seconds& all() const { return all_; }

  [[nodiscard]] const Seconds& recent() const { return recent_; }

 private:
  struct Moment {
    Instant at;
    TimeUse use{};
    double seconds = 0;
  };

  Seconds all_{}, recent_{};
  std::deque<Moment> moments_;  // of the last minutes
  Instant last_{};
};

}  // namespace gleaner

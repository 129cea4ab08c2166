// The page's view: the run at one moment, and facts of the process's life. Immutable once
// published.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "common/model/run_plan.hpp"
#include "common/time.hpp"
#include "master/core/reports.hpp"
#include "master/see/run_events.hpp"
#include "schema/messages.hpp"

namespace gleaner {

// Adds up a run's time by the cause for which it waits, over the life of the process and over the
// last minutes. The core names the cause at one moment. Time is a parameter. One thread at a time.

// The cause for which the run waits at one moment.
enum class TimeUse : std::uint8_t {
  kTraining,    // results of the present batch, on their way: no time is lost
  kMaster,      // the master's own arithmetic
  kLate,        // results that are seconds late
  kReplay,      // repeated training of batches after a loss
  kMoving,      // shards that nobody holds, or that are loaded or handed over
  kCommit,      // commits at the end of a round
  kStore,       // folds, and room on the disk
  kEvaluation,  // scores of test examples
  kNobody,      // volunteers: too few are here
};
inline constexpr std::size_t kTimeUses = 9;

// A bounded label: "training", "late", …
std::string_view time_use_name(TimeUse use);
// The cause in words.
std::string_view time_use_text(TimeUse use);

TimeUse time_use(const RunStatus& status, const RunPlan& plan);

class TimeSpent {
 public:
  using Seconds = std::array<double, kTimeUses>;
  // Length of "the last minutes".
  static constexpr Millis kRecent{300'000};

  // Adds the time since the last call to the cause `use`. More than a minute is not added: nobody
  // observed the run meanwhile.
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

// A banned key.
struct BanShown {
  std::string key;
  std::string name;  // as the volunteer called itself
  std::string reason;
};

// The first words of the wait of a run whose disk is full.
inline constexpr const char* kDiskSpace = "disk space";

struct PageView {
  std::uint64_t version = 0;  // increases; 0: the run has not begun
  Instant at{};
  std::int64_t wall_seconds = 0;  // of this moment, since 1970
  RunStatus status;
  std::vector<AccountRecord> accounts;
  // Over the last seconds; negative when not measured.
  double bytes_per_second_down = -1, bytes_per_second_up = -1;
  std::int64_t checkpoint_wall_seconds = 0;  // of the last checkpoint; 0: there is none
  std::vector<std::uint8_t> is_committing;   // one a shard: whether its next commit is awaited
  TimeSpent::Seconds time_all{}, time_recent{};
  std::vector<BanShown> banned;
};

// An event, ready to be sent.
struct EventShown {
  std::int64_t wall_seconds = 0;
  LogLevel level = LogLevel::kInfo;
  std::string text;  // one sentence or a few
  std::string json;  // as EVENTS.md specifies it
  bool is_for_observers = false;
};

}  // namespace gleaner

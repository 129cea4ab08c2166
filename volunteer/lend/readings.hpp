// Readings of the machine at one moment, as the manners weigh them. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/time.hpp"

namespace gleaner::volunteer {

// One source of news about use of the machine by people.
struct UseReading {
  std::string source;               // "terminals", "logind"
  std::optional<Instant> last_use;  // the latest that it knows of; nullopt: it cannot tell
  std::string detail;               // where that was, or why it cannot tell
};

struct Readings {
  std::vector<UseReading> uses;  // of every source that this machine has
  bool has_desktop = false;      // a graphical session, or the place where one logs in
  std::string confinement;       // "a container", "job 17 of Slurm"; empty: a whole machine
  bool is_suspending = false;
  std::optional<bool> on_battery;
  std::optional<bool> is_metered;
  std::optional<double> celsius;              // of the hottest part that says so
  std::optional<std::uint64_t> memory_bytes;  // that programs could still get
  std::optional<double> cpu_pressure;     // percent of 10 s in which others waited for a processor
  std::optional<double> memory_pressure;  // percent of 10 s in which somebody waited for memory
  std::uint32_t minute_of_week = 0;       // local time, from Monday at midnight
  std::uint64_t up_bytes = 0, down_bytes = 0;  // sent and received on this day
  std::uint64_t held_bytes = 0;                // memory that the shards take
};

// A way of telling whether people use the machine.
class UseSource {
 public:
  virtual ~UseSource() = default;
  // Nullopt where the machine has nothing of the kind. `now` never goes back.
  virtual std::optional<UseReading> read(Instant now) = 0;
};

}  // namespace gleaner::volunteer

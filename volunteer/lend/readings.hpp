// Readings of the machine at one moment, from which the pause policy decides. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/time.hpp"

namespace gleaner::volunteer {

// The knowledge of one source about people's use of the machine.
struct UseReading {
  std::string source;               // "terminals", "logind"
  std::optional<Instant> last_use;  // the latest known; nullopt: it cannot tell
  std::string detail;               // the place of that use, or why it cannot tell
};

struct Readings {
  std::vector<UseReading> uses;  // of every source that this machine has
  bool has_desktop = false;      // a graphical session, or the place where one logs in
  std::string confinement;       // "a container", "job 17 of Slurm"; empty: a whole machine
  bool is_suspending = false;
  std::optional<bool> on_battery;
  std::optional<bool> is_metered;
  std::optional<double> celsius;              // of the hottest part with a sensor
  std::optional<std::uint64_t> memory_bytes;  // free for programs
  // percent of 10 s in which other programs waited for a processor
  std::optional<double> cpu_pressure;
  std::optional<double> memory_pressure;  // percent of 10 s in which a program waited for memory
  std::uint32_t minute_of_week = 0;       // local time, from Monday at midnight
  std::uint64_t up_bytes = 0, down_bytes = 0;  // sent and received on this day
  std::uint64_t held_bytes = 0;                // memory that the shards take
};

// A way to tell whether people use the machine.
class UseSource {
 public:
  virtual ~UseSource() = default;
  // Nullopt when the machine has no such source. `now` never goes back.
  virtual std::optional<UseReading> read(Instant now) = 0;
};

}  // namespace gleaner::volunteer

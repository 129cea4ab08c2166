// The state of the machine apart from who uses it: power, heat, memory, pressure, and whether it is
// a whole machine at all. Stateless; any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "volunteer/idle/readings.hpp"

namespace gleaner::volunteer {

class Machine {
 public:
  // The value of an environment variable; nullptr where it is not set.
  using Environment = std::function<const char*(const char*)>;

  // `root` stands before /proc, /sys and /run; empty on a real machine.
  Machine(std::string root, Environment environment)
      : root_(std::move(root)), environment_(std::move(environment)) {}

  // Fills in everything but the use by people, the metered network and the day's traffic.
  void read(Readings& readings) const;

  [[nodiscard]] std::string confinement() const;
  [[nodiscard]] std::optional<bool> on_battery() const;
  [[nodiscard]] std::optional<double> celsius() const;
  [[nodiscard]] std::optional<std::uint64_t> memory_bytes() const;
  // Pressure in the control groups beside this process's own and those that hold it.
  // The pressure of the machine as a whole counts this process's own threads, which wait by choice.
  [[nodiscard]] std::optional<double> cpu_pressure() const;
  [[nodiscard]] std::optional<double> memory_pressure() const;
  [[nodiscard]] bool has_display() const;

 private:
  const std::string root_;
  const Environment environment_;
};

// Processors' worth that the control group of this process allows: 1.5; nullopt without a limit.
std::optional<double> cpu_quota(const std::string& root);
// Bytes of memory that it allows; nullopt without a limit.
std::optional<std::uint64_t> memory_limit(const std::string& root);

// Makes the kernel treat the whole control group of this process as idle, if the group is its own:
// nothing else is in it, and it may be written.
void give_way_as_group(const std::string& root);

// Minutes of the local time from Monday at midnight, for seconds since 1970.
std::uint32_t minute_of_week(std::int64_t wall_seconds);

}  // namespace gleaner::volunteer

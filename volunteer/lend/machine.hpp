// The state of the machine apart from who uses it: power, heat, memory, pressure, and whether it is
// a whole machine at all. Stateless; any thread.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "common/machine_facts.hpp"
#include "volunteer/lend/readings.hpp"

namespace gleaner::volunteer {

// Paths of what a folder holds; empty where it cannot be read.
inline std::vector<std::filesystem::path> entries_of(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    paths.push_back(entry->path());
  }
  return paths;
}

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

// Makes the kernel treat the whole control group of this process as idle, if the group is its own:
// nothing else is in it, and it may be written.
void give_way_as_group(const std::string& root);

// Minutes of the local time from Monday at midnight, for seconds since 1970.
std::uint32_t minute_of_week(std::int64_t wall_seconds);

// Giving way to programs of other sessions.

// While it lives, the session of this process (setsid(2)) gives way to others as `nice` says, from
// 0 to 19. Linux shares processors among sessions first, and then among the threads of each
// (autogroups, sched(7)): idle threads in a session of their own would take as much as all that a
// person runs in another. A service whose control group has a share of its own is not concerned.
// One thread.
class QuietSession {
 public:
  // `root` is empty, but for tests. Does nothing where the session gives way as far already, and
  // where the kernel does not group by sessions.
  QuietSession(const std::string& root, int nice);
  // The session is as before: the terminal in which the program was started goes on.
  ~QuietSession();
  QuietSession(const QuietSession&) = delete;
  QuietSession& operator=(const QuietSession&) = delete;

 private:
  const std::string path_;
  std::optional<int> before_;
};

}  // namespace gleaner::volunteer

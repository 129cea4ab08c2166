// Readings of the machine except its use by people: power, heat, memory, pressure, and whether the
// process runs in a batch job or a container. Any thread, except for QuietSession.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "common/machine_facts.hpp"
#include "volunteer/lend/pause_policy.hpp"

namespace gleaner::volunteer {

// Paths of a folder's entries; empty when the folder cannot be read.
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
  // The value of an environment variable; nullptr when it is not set.
  using Environment = std::function<const char*(const char*)>;

  // `root` is a prefix of /proc, /sys and /run; empty on a real machine.
  Machine(std::string root, Environment environment)
      : root_(std::move(root)), environment_(std::move(environment)) {}

  // Fills in all readings but use by people, the metered network and the day's traffic.
  void read(Readings& readings) const;

  [[nodiscard]] std::string confinement() const;
  [[nodiscard]] std::optional<bool> on_battery() const;
  [[nodiscard]] std::optional<double> celsius() const;
  [[nodiscard]] std::optional<std::uint64_t> memory_bytes() const;
  // Pressure in the control groups beside this process's groups. The machine's total would count
  // this process's own threads, which wait by choice.
  [[nodiscard]] std::optional<double> cpu_pressure() const;
  [[nodiscard]] std::optional<double> memory_pressure() const;
  [[nodiscard]] bool has_display() const;

 private:
  const std::string root_;
  const Environment environment_;
};

// Makes the kernel treat this process's control group as idle, if nothing else is in the group and
// the group may be written.
void give_way_as_group(const std::string& root);

// Minutes of local time since Monday at midnight, for seconds since 1970.
std::uint32_t minute_of_week(std::int64_t wall_seconds);

// While it lives, the session of this process (setsid(2)) runs at niceness `nice`, from 0 to 19.
// Linux shares processors among sessions first, and then among the threads of each (autogroups,
// sched(7)): without this, idle threads in a session of their own would take as much as all
// programs of another session. Has no effect on a service whose control group has its own share.
// One thread.
class QuietSession {
 public:
  // `root` is empty outside tests. Does nothing when the session's niceness is as high already, or
  // when the kernel does not group by sessions.
  QuietSession(const std::string& root, int nice);
  // Restores the session: its terminal outlives this program.
  ~QuietSession();
  QuietSession(const QuietSession&) = delete;
  QuietSession& operator=(const QuietSession&) = delete;

 private:
  const std::string path_;
  std::optional<int> before_;
};

}  // namespace gleaner::volunteer

// Reads every source in a loop on a thread of its own. Reports at once when somebody begins to use
// the machine or the machine is about to sleep, otherwise once a second.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "volunteer/lend/machine.hpp"
#include "volunteer/lend/pause_policy.hpp"
#include "volunteer/lend/system_bus.hpp"

namespace gleaner::volunteer {

// Events of keyboards, mice and touchpads that this process may read (group `input`). If it may
// read none, the desktop or the terminals must tell. One thread.
class InputDevices : public UseSource {
 public:
  // `root` is a prefix of /dev; empty on a real machine.
  explicit InputDevices(std::string root = {}) : root_(std::move(root)) {}

  ~InputDevices() override;
  InputDevices(const InputDevices&) = delete;
  InputDevices& operator=(const InputDevices&) = delete;

  std::optional<UseReading> read(Instant now) override;

 private:
  void look_for_devices(Instant now);

  const std::string root_;
  std::map<std::string, int> open_;  // name -> descriptor
  std::optional<Instant> looked_at_;
  Instant last_use_{};
  std::string last_device_ = "none";
};

// Use of terminals: consoles and pseudo-terminals, and therefore ssh logins. The kernel notes
// typing in a device's access time: at once after a rest of more than 8 seconds, otherwise to
// within 8 seconds. One thread.
class Terminals : public UseSource {
 public:
  // `root` is a prefix of /dev; empty on a real machine.
  explicit Terminals(std::string root = {}) : root_(std::move(root)) {}

  std::optional<UseReading> read(Instant now) override;

 private:
  struct Seen {
    std::int64_t accessed_ns = 0;
    Instant last_use{};
  };

  const std::string root_;
  std::map<std::string, Seen> seen_;
};

// The sources of this system, without the system bus and helpers. `root` as above.
std::vector<std::unique_ptr<UseSource>> use_sources(const std::string& root);

// Collects reports of helpers (the verb session-helper) in graphical sessions whose desktop does
// not tell logind. Locked: the control socket's thread writes, the watch's thread reads.
class SessionReports : public UseSource {
 public:
  // A helper of `session` reports its last use. The name is logind's or any other.
  void report(const std::string& session, Instant last_use, Instant now);

  // Nullopt while no helper reports. A silent helper is forgotten, and logind's report on its
  // session counts again.
  std::optional<UseReading> read(Instant now) override;

  // Sessions with helpers, as of the last read().
  [[nodiscard]] std::set<std::string> sessions() const;

 private:
  struct Heard {
    Instant last_use{};
    Instant at{};
  };

  mutable std::mutex mutex_;
  std::map<std::string, Heard> heard_;
};

class Watch {
 public:
  struct Options {
    std::string root;  // prefix of /dev, /proc, /run, /sys and /tmp; empty on a real machine
    Machine::Environment environment;
    std::function<void(Readings)> report;  // called on the watch's thread
  };

  explicit Watch(Options options);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Whether use must be reported at once. Need not be while nothing is computed.
  void set_hurry(bool is_on);
  // The shards are handed over: lets the machine sleep.
  void allow_sleep();

  // Takes helpers' reports.
  [[nodiscard]] SessionReports& reports() { return reports_; }

 private:
  void run();
  Readings read(Instant now);
  bool is_news(const Readings& readings, Instant now) const;

  const Options options_;
  SessionReports reports_;
  SystemBus bus_;
  Machine machine_;
  std::vector<std::unique_ptr<UseSource>> sources_;  // all other sources
  Readings slow_;                                    // readings that are taken once a second
  std::optional<Instant> slow_at_;
  std::optional<Instant> reported_at_;
  Readings reported_;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool is_hurried_ = true;
  bool may_sleep_ = false;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace gleaner::volunteer

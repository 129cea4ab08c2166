// Reads every source again and again on a thread, and reports: at once when somebody begins to use
// the machine or it is about to sleep, otherwise once a second.
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
#include "volunteer/lend/readings.hpp"
#include "volunteer/lend/system_bus.hpp"

namespace gleaner::volunteer {

// Events of keyboards, mice and touchpads, where this process may read them (group `input`). Where
// it may not, there is no such source: the desktop or the terminals have to tell. One thread.
class InputDevices : public UseSource {
 public:
  // `root` stands before /dev; empty on a real machine.
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

// Use of terminals: consoles and pseudo-terminals, hence logins over ssh too. The kernel notes in a
// device's access time when something was typed, to 8 seconds after a rest of less than that, and
// at once after a longer one. One thread.
class Terminals : public UseSource {
 public:
  // `root` stands before /dev; empty on a real machine.
  explicit Terminals(std::string root = {}) : root_(std::move(root)) {}

  std::optional<UseReading> read(Instant now) override;

 private:
  // One device.
  struct Seen {
    std::int64_t accessed_ns = 0;
    Instant last_use{};
  };

  const std::string root_;
  std::map<std::string, Seen> seen_;
};

// Sources of news about use on this system, apart from the system bus and from helpers. `root` as
// above.
std::vector<std::unique_ptr<UseSource>> use_sources(const std::string& root);

// Helpers in graphical sessions report use where logind is not told (the verb session-helper).
// Locked: the control socket's thread writes, the watch's thread reads.
class SessionReports : public UseSource {
 public:
  // A helper of `session`, logind's name of it or any other, says when it was used last.
  void report(const std::string& session, Instant last_use, Instant now);

  // Nullopt while no helper reports. One that has fallen silent is forgotten: then logind's word
  // counts for its session again.
  std::optional<UseReading> read(Instant now) override;

  // Sessions that helpers report on, as of the last read().
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
    std::string root;  // before /dev, /proc, /run, /sys and /tmp; empty on a real machine
    Machine::Environment environment;
    std::function<void(Readings)> report;  // called on the watch's thread
  };

  explicit Watch(Options options);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // While nothing is computed there is no hurry.
  void set_hurry(bool is_on);
  // The shards are handed over: the machine may sleep.
  void allow_sleep();

  // For helpers' reports.
  [[nodiscard]] SessionReports& reports() { return reports_; }

 private:
  void run();
  Readings read(Instant now);
  bool is_news(const Readings& readings, Instant now) const;

  const Options options_;
  SessionReports reports_;
  SystemBus bus_;
  Machine machine_;
  std::vector<std::unique_ptr<UseSource>> sources_;  // the others
  Readings slow_;                                    // what is read once a second
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

// Reads every source again and again on a thread, and reports: at once when somebody begins to use
// the machine or it is about to sleep, otherwise once a second.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "volunteer/idle/machine.hpp"
#include "volunteer/idle/readings.hpp"
#include "volunteer/idle/session_reports.hpp"
#include "volunteer/idle/system_bus.hpp"

namespace gleaner::volunteer {

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

// Reads the system's message bus: logind of sessions, of what keeps the machine awake and of
// its sleep; NetworkManager of metered networks. Calls block for a second at most: use it from a
// thread that nobody waits for. One thread.
//
// Only graphical sessions count here, since the terminals tell of the others (watch.hpp). One
// that is locked has not been used since then. What blocks the idle state, a film for instance, is
// use. Where libsystemd is missing, a logind that runs is one that cannot tell.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "volunteer/lend/readings.hpp"

namespace gleaner::volunteer {

class SystemBus : public UseSource {
 public:
  struct Options {
    // Sessions, by logind's names, that are left to those who tell of them. May be empty.
    std::function<std::set<std::string>()> told_elsewhere;
    std::string root;  // before the paths of the machine's files
    std::string library = "libsystemd.so.0";
  };

  explicit SystemBus(Options options);
  ~SystemBus() override;
  SystemBus(const SystemBus&) = delete;
  SystemBus& operator=(const SystemBus&) = delete;

  // Takes in signals; asks again where one came, and every few seconds.
  std::optional<UseReading> read(Instant now) override;

  // As of the last read().
  [[nodiscard]] bool is_suspending() const;
  [[nodiscard]] bool has_desktop() const;
  [[nodiscard]] std::optional<bool> is_metered() const;

  // The machine may go to sleep now. Until then, once it wants to, logind waits a few seconds.
  void allow_sleep();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gleaner::volunteer

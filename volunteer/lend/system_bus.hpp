// Reads the system's message bus: sessions, idle inhibitors and sleep from logind; metered networks
// from NetworkManager. Calls block for a second at most: use it on a thread for which nobody waits.
// One thread.
//
// Only graphical sessions count here, since watch.hpp reads the terminals. A locked session has not
// been used since it was locked. An inhibitor of the idle state, for instance a film, counts as
// use. Without libsystemd, a running logind counts as a source that cannot tell.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "volunteer/lend/pause_policy.hpp"

namespace gleaner::volunteer {

class SystemBus : public UseSource {
 public:
  struct Options {
    // Sessions, by logind's names, that other sources report. May be empty.
    std::function<std::set<std::string>()> told_elsewhere;
    std::string root;  // prefix of the machine's files
    std::string library = "libsystemd.so.0";
  };

  explicit SystemBus(Options options);
  ~SystemBus() override;
  SystemBus(const SystemBus&) = delete;
  SystemBus& operator=(const SystemBus&) = delete;

  // Takes in signals. Asks again after a signal and every few seconds.
  std::optional<UseReading> read(Instant now) override;

  // As of the last read().
  [[nodiscard]] bool is_suspending() const;
  [[nodiscard]] bool has_desktop() const;
  [[nodiscard]] std::optional<bool> is_metered() const;

  // Lets the machine go to sleep. Without this call logind delays sleep for a few seconds.
  void allow_sleep();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gleaner::volunteer

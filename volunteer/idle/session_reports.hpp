// Helpers in graphical sessions report use where logind is not told (the verb session-helper).
// Locked: the control socket's thread writes, the watch's thread reads.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>

#include "volunteer/idle/readings.hpp"

namespace gleaner::volunteer {

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

}  // namespace gleaner::volunteer

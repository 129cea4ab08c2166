// Tells volunteers that were lost shortly before the end of a run, once they come back, that the
// run is over. I/O thread only.
#pragma once

#include <asio/io_context.hpp>
#include <map>
#include <string>

#include "common/time.hpp"
#include "master/console/progress.hpp"
#include "master/core/events/notices.hpp"
#include "schema/messages.hpp"

namespace gleaner {

class Farewell {
 public:
  void note(const VolunteerJoined& joined) { lost_.erase(joined.name); }

  void note(const VolunteerLeft& left) {
    if (!left.polite) lost_[left.name] = monotonic_now();
  }

  // Answers the first message of a connection that comes after the end.
  [[nodiscard]] Goodbye answer(const Message& first);

  // Lets `io` take connections until all that were lost lately have come back, somebody asks to
  // end, or `most` has passed. The console says so, if there is anybody to wait for.
  void wait(asio::io_context& io, Millis most, const bool& is_asked_to_end, Console& console);

 private:
  std::map<std::string, Instant> lost_;  // by name, since when
};

}  // namespace gleaner

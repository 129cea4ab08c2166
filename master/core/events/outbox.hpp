// Collects the effects of one event in the order in which they are to be performed, and knows the
// instant at which the event is handled. The classes of the core speak to the world through it
// alone. Used from the core only.
#pragma once

#include <string>
#include <utility>

#include "master/core/events/events.hpp"

namespace gleaner {

class Outbox {
 public:
  // The core handles an event at `now`.
  void set_now(Instant now) { now_ = now; }

  [[nodiscard]] Instant now() const { return now_; }

  void send(SessionId session, Message message) {
    effects_.emplace_back(Send{session, std::move(message)});
  }

  void close(SessionId session) { effects_.emplace_back(CloseSession{session}); }

  void push(WorkerTask task) { effects_.emplace_back(std::move(task)); }

  void push(StorageTask task) { effects_.emplace_back(std::move(task)); }

  void tell(Notice notice) { effects_.emplace_back(std::move(notice)); }

  void log(LogLevel level, std::string kind, std::string message) {
    tell(LogLine{level, std::move(message), std::move(kind)});
  }

  void push(Done done) { effects_.emplace_back(std::move(done)); }

  // The effects so far, which are forgotten here.
  [[nodiscard]] Effects take() { return std::exchange(effects_, {}); }

 private:
  Instant now_{};
  Effects effects_;
};

}  // namespace gleaner

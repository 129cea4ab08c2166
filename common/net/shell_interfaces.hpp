// The clock and the threads of a shell. A program gives it those of the machine
// (io_clock_and_threads.hpp), a simulation gives it simulated ones. A shell is used on one thread,
// and every call back comes on that thread, after the call that asked for it has returned.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/access/standing.hpp"
#include "common/bytes.hpp"
#include "common/lane.hpp"
#include "common/time.hpp"

namespace gleaner {

class Clock {
 public:
  virtual ~Clock() = default;

  [[nodiscard]] virtual Instant now() const = 0;
  // Makes the call when `delay` has passed.
  virtual void after(Micros delay, std::function<void()> call) = 0;
};

// Does tasks one after the other, in the order in which they were given.
template <typename Task, typename Answer>
class TaskThread {
 public:
  virtual ~TaskThread() = default;
  // Calls `done` with the task's answer.
  virtual void run(Task task, std::function<void(Answer)> done) = 0;
};

// Makes calls back that are void once their owner has ended.
class Lifetime {
 public:
  template <typename... Arguments, typename Call>
  [[nodiscard]] std::function<void(Arguments...)> guard(Call call) const {
    return [alive = std::weak_ptr<int>(alive_), call = std::move(call)](Arguments... arguments) {
      if (!alive.expired()) call(std::forward<Arguments>(arguments)...);
    };
  }

  void end() { alive_.reset(); }

 private:
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

// Frames to and from one peer, by whatever transport: TCP between machines, memory inside a
// process. I/O thread only.
class Link {
 public:
  struct Handler {
    // A whole, verified payload, and its size on the wire with framing.
    std::function<void(Bytes payload, std::size_t wire_bytes)> on_frame;
    // Once, and nothing afterwards; not after the link's owner called abandon().
    std::function<void(std::string reason)> on_closed;
    // Some of what was queued has left. May be empty.
    std::function<void()> on_sent{};
  };

  virtual ~Link() = default;

  // Starts delivering. Handlers are never called from within send(), close() or start().
  virtual void start(Handler handler) = 0;
  // Queues a payload and returns its size on the wire. A peer that does not read makes the queue
  // overflow its bound: the link then closes by itself and says so through on_closed.
  virtual std::size_t send(Bytes payload, Lane lane) = 0;
  // Bytes that are queued and has not left.
  [[nodiscard]] virtual std::size_t bytes_waiting() const = 0;

  // Lets as many more bytes wait to be sent, where there is a bound.
  virtual void let_wait(std::size_t /*more_bytes*/) {}

  // While it is off nothing is delivered, and the peer cannot send without end. On at first.
  virtual void set_listening(bool is_on) = 0;
  // Closes when everything queued has left, or after a deadline; on_closed follows.
  virtual void close() = 0;
  // Forgets the handlers and closes at once.
  virtual void abandon() = 0;
};

// Who has introduced itself: the link's first frame is the introduction, which has arrived.
struct Arrival {
  std::shared_ptr<Link> link;
  std::string peer;          // ADDRESS:PORT
  std::optional<KeyId> key;  // which it has proved to have; none in plain text
};

}  // namespace gleaner

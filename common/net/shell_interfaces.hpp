// The clock and threads of a shell: the machine's in a program (io_clock_and_threads.hpp),
// simulated ones in a simulation. A shell runs on one thread. Every callback runs on that thread,
// after the call that requested it has returned.
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
  // Calls `call` after `delay`.
  virtual void after(Micros delay, std::function<void()> call) = 0;
};

// Runs tasks one after another, in the order of run().
template <typename Task, typename Answer>
class TaskThread {
 public:
  virtual ~TaskThread() = default;
  // Calls `done` with the task's answer.
  virtual void run(Task task, std::function<void(Answer)> done) = 0;
};

// Makes callbacks that do nothing after their owner has ended.
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

// Frames to and from one peer over any transport: TCP between machines, memory within a process.
// I/O thread only.
class Link {
 public:
  struct Handler {
    // A complete, verified payload, and its size on the wire with framing.
    std::function<void(Bytes payload, std::size_t wire_bytes)> on_frame;
    // Called once, with no call after it; never after abandon().
    std::function<void(std::string reason)> on_closed;
    // Queued bytes have been sent. May be empty.
    std::function<void()> on_sent{};
  };

  virtual ~Link() = default;

  // Starts delivery. Handlers are never called from within send(), close() or start().
  virtual void start(Handler handler) = 0;
  // Queues a payload and returns its size on the wire. If a peer does not read, the queue exceeds
  // its bound: the link then closes and calls on_closed.
  virtual std::size_t send(Bytes payload, Lane lane) = 0;
  // Queued bytes that have not been sent.
  [[nodiscard]] virtual std::size_t bytes_waiting() const = 0;

  // Allows this number of additional bytes in the queue, if the queue is bounded.
  virtual void let_wait(std::size_t /*more_bytes*/) {}

  // While it is off, no frame is delivered, and the peer cannot send without limit. Initially on.
  virtual void set_listening(bool is_on) = 0;
  // Closes when the queue has been sent, or after a deadline; then calls on_closed.
  virtual void close() = 0;
  // Drops the handlers and closes at once.
  virtual void abandon() = 0;
};

// A peer that has introduced itself: the link's first frame, already received, is the introduction.
struct Arrival {
  std::shared_ptr<Link> link;
  std::string peer;          // ADDRESS:PORT
  std::optional<KeyId> key;  // whose possession it has proved; none in plain text
};

}  // namespace gleaner

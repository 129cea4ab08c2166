// The clock and the threads of a shell. A program gives it those of the machine
// (io_clock_and_threads.hpp), a simulation gives it simulated ones. A shell is used on one thread,
// and every call back comes on that thread, after the call that asked for it has returned.
#pragma once

#include <functional>
#include <memory>
#include <utility>

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

}  // namespace gleaner

// What a shell stands on beside its links, so that it runs unchanged in a program (io_ground.hpp)
// and in a simulation: time, and threads that do its tasks. A shell is on one thread, on which it
// is called back, never from within its asking.
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
  virtual void after(Micros delay, std::function<void()> call) = 0;
};

// Does tasks one after the other, in the order in which they were given.
template <typename Task, typename Answer>
class TaskThread {
 public:
  virtual ~TaskThread() = default;
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

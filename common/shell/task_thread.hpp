// A thread that does tasks one after the other, in the order in which they were given, for an owner
// on another thread. Programs use `common/net/io_task_thread.hpp`; in a simulation it is a thread
// of simulated time.
#pragma once

#include <functional>

namespace gleaner {

template <typename Task, typename Answer>
class TaskThread {
 public:
  virtual ~TaskThread() = default;

  // `done` is called once, on the thread that asks, and never from within this.
  virtual void run(Task task, std::function<void(Answer)> done) = 0;
};

}  // namespace gleaner

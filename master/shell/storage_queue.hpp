// Chooses the next of the waiting storage tasks. They run in order, with one exception. The fold of
// a wide model takes long and has steps: between two steps later tasks that stage or settle commits
// or read rows may run, so that they need not wait for the fold. One thread at a time.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <utility>

#include "master/core/events.hpp"

namespace gleaner {

class StorageQueue {
 public:
  void push(StorageTask task) {
    tasks_.push_back(std::make_shared<const StorageTask>(std::move(task)));
  }

  [[nodiscard]] bool empty() const { return tasks_.empty(); }

  // Chooses the task to run; the same task until done() or stepped() is called. Requires !empty().
  std::shared_ptr<const StorageTask> next();
  // The task is done, and leaves the queue.
  void done();
  // The task has more steps, and goes on when it is chosen again.
  void stepped();

 private:
  std::deque<std::shared_ptr<const StorageTask>> tasks_;
  bool is_chosen_ = false;
  std::size_t chosen_ = 0;
  bool has_begun_ = false;      // the first task
  std::size_t in_between_ = 0;  // tasks chosen since the head's last step
};

}  // namespace gleaner

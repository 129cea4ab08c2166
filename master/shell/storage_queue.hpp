// The storage tasks that are not done yet, and which of them is next. In their order, but for one
// thing: a fold of a wide model takes long and is done in steps, and between two of them commits
// are staged and settled and rows read that came after it, so that nobody waits for a fold who need
// not. One thread at a time.
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

  // Chooses the task to run; the same one until one of the calls below tells how it went. Requires
  // !empty().
  std::shared_ptr<const StorageTask> next();
  // It is done, and leaves the queue.
  void done();
  // It has more steps, and goes on when it is chosen again.
  void stepped();

 private:
  std::deque<std::shared_ptr<const StorageTask>> tasks_;
  bool is_chosen_ = false;
  std::size_t chosen_ = 0;
  bool has_begun_ = false;      // the head
  std::size_t in_between_ = 0;  // tasks chosen since the head's last step
};

}  // namespace gleaner

// A thread of the machine that does tasks for an I/O thread.
#pragma once

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/thread_pool.hpp>
#include <functional>
#include <utility>

#include "common/shell/task_thread.hpp"

namespace gleaner {

template <typename Task, typename Answer>
class IoTaskThread : public TaskThread<Task, Answer> {
 public:
  // `work` is called on the thread, `done` on that of `io`, which outlives this.
  IoTaskThread(asio::io_context& io, std::function<Answer(const Task&)> work)
      : io_(io), work_(std::move(work)) {}

  // Waits until all tasks are done. Their `done` may still be called.
  ~IoTaskThread() override { thread_.join(); }

  void run(Task task, std::function<void(Answer)> done) override {
    asio::post(thread_, [this, task = std::move(task), done = std::move(done)]() mutable {
      asio::post(io_, [answer = work_(task), done = std::move(done)]() mutable {
        done(std::move(answer));
      });
    });
  }

 private:
  asio::io_context& io_;
  std::function<Answer(const Task&)> work_;
  asio::thread_pool thread_{1};
};

}  // namespace gleaner

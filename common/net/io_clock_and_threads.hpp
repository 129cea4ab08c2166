// The machine's clock and threads, for a shell on the thread of an io_context.
#pragma once

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/thread_pool.hpp>
#include <functional>
#include <memory>
#include <set>
#include <utility>

#include "common/net/shell_interfaces.hpp"

namespace gleaner {

class IoClock : public Clock {
 public:
  explicit IoClock(asio::io_context& io) : io_(io) {}

  [[nodiscard]] Instant now() const override { return monotonic_now(); }

  void after(Micros delay, std::function<void()> call) override {
    const auto timer = std::make_shared<asio::steady_timer>(io_, delay);
    timers_.insert(timer);
    timer->async_wait(
        [this, waited = std::weak_ptr(timer), call = std::move(call)](asio::error_code) {
          const auto own = waited.lock();
          if (!own) return;
          timers_.erase(own);
          call();
        });
  }

  // Drops all pending calls, so that the io_context may run out of work.
  void stop() { timers_.clear(); }

 private:
  asio::io_context& io_;
  std::set<std::shared_ptr<asio::steady_timer>> timers_;
};

template <typename Task, typename Answer>
class IoTaskThread : public TaskThread<Task, Answer> {
 public:
  // `work` runs on the thread. `io` outlives this object.
  IoTaskThread(asio::io_context& io, std::function<Answer(const Task&)> work)
      : io_(io), work_(std::move(work)) {}

  // Waits until all tasks are done; their `done` may still be called.
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

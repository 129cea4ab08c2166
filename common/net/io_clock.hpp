// The machine's clock, with calls on an I/O thread. That thread only.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <set>
#include <utility>

#include "common/shell/clock.hpp"

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

  // Forgets all calls that it has been asked for.
  void stop() { timers_.clear(); }

 private:
  asio::io_context& io_;
  std::set<std::shared_ptr<asio::steady_timer>> timers_;
};

}  // namespace gleaner

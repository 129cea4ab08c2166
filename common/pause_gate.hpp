// A gate that compute threads pass between two blocks of their work. While it is closed they wait
// there, so that a piece of work stops within one block and goes on later without losing a bit.
// Any thread may call anything.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/time.hpp"

namespace gleaner {

class PauseGate {
 public:
  void close() {
    if (is_closed_.load()) return;
    closed_at_us_ = monotonic_now().time_since_epoch().count();
    is_closed_ = 1;
  }

  void open() {
    if (!is_closed_.load()) return;
    closed_us_ += monotonic_now().time_since_epoch().count() - closed_at_us_.load();
    is_closed_ = 0;
    is_closed_.notify_all();
  }

  [[nodiscard]] bool is_closed() const { return is_closed_.load() != 0; }

  // Waits while the gate is closed.
  void pass() {
    while (is_closed_.load(std::memory_order_acquire) != 0) is_closed_.wait(1);
  }

  // How long it has been closed in all, up to the last time it was opened.
  [[nodiscard]] Micros closed_for() const { return Micros(closed_us_.load()); }

 private:
  std::atomic<int> is_closed_{0};
  std::atomic<std::int64_t> closed_at_us_{0};
  std::atomic<std::int64_t> closed_us_{0};
};

// How long work behind a gate takes, without the time for which the gate was closed.
class WorkTimer {
 public:
  explicit WorkTimer(const PauseGate& gate)
      : gate_(gate), start_(monotonic_now()), closed_(gate.closed_for()) {}

  [[nodiscard]] std::uint64_t elapsed_us() const {
    const Micros all = monotonic_now() - start_;
    const Micros closed = gate_.closed_for() - closed_;
    return all > closed ? static_cast<std::uint64_t>((all - closed).count()) : 0;
  }

 private:
  const PauseGate& gate_;
  Instant start_;
  Micros closed_;
};

}  // namespace gleaner

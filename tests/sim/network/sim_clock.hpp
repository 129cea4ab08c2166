// Simulated time: closures in the order of their instants, ties in the order of their scheduling.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "common/counter_random.hpp"
#include "common/net/shell_interfaces.hpp"

namespace gleaner::sim {

class SimClock : public Clock {
 public:
  [[nodiscard]] Instant now() const override { return now_; }

  void at(Instant when, std::function<void()> run) {
    queue_.push({std::max(when, now_), next_++, std::move(run)});
  }

  void after(Micros delay, std::function<void()> run) override { at(now_ + delay, std::move(run)); }

  // Runs the next closure; false when none is left.
  bool step() {
    if (queue_.empty()) return false;
    std::function<void()> run = std::move(const_cast<Entry&>(queue_.top()).run);
    now_ = queue_.top().when;
    queue_.pop();
    run();
    // A digest over all events and their times: two runs are equal if their digests are.
    digest_ = mix64(digest_ ^ static_cast<std::uint64_t>(now_.time_since_epoch().count()));
    ++steps_;
    return true;
  }

  // Adds a fact to the digest of the run.
  void note(std::uint64_t fact) { digest_ = mix64(digest_ ^ mix64(fact)); }

  [[nodiscard]] std::uint64_t digest() const { return digest_; }

  [[nodiscard]] std::uint64_t steps() const { return steps_; }

 private:
  struct Entry {
    Instant when;
    std::uint64_t sequence;
    std::function<void()> run;

    bool operator<(const Entry& other) const {
      return std::pair(when, sequence) > std::pair(other.when, other.sequence);
    }
  };

  Instant now_{};
  std::uint64_t next_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t digest_ = 0;
  std::priority_queue<Entry> queue_;
};

}  // namespace gleaner::sim

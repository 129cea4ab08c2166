// Threads that perform an executor's units without a hidden layer, and sleep while there are none.
#pragma once

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <atomic>
#include <climits>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "common/float_state.hpp"
#include "common/os/priority.hpp"
#include "volunteer/client.hpp"
#include "volunteer/executor.hpp"

namespace gleaner::volunteer {

class LaneThreads : public Lanes {
 public:
  // Both outlive this. The threads run at niceness `nice`; if `is_pinned`, each stays on a
  // processor.
  LaneThreads(asio::io_context& io, Executor& executor, unsigned threads, int nice, bool is_pinned)
      : io_(io), executor_(executor), count_(threads), nice_(nice), is_pinned_(is_pinned) {}

  // Stops units that are under way.
  ~LaneThreads() override;
  LaneThreads(const LaneThreads&) = delete;
  LaneThreads& operator=(const LaneThreads&) = delete;

  void start(OnDone on_done) override;

  void let_begin(bool may_begin) override { executor_.let_begin(may_begin); }

  [[nodiscard]] bool is_working() const override { return executor_.is_busy(); }

  // At most `threads` lanes begin units from now on.
  void use(unsigned threads) {
    used_ = threads;
    executor_.note_change();
  }

 private:
  void work(unsigned lane);

  asio::io_context& io_;
  Executor& executor_;
  const unsigned count_;
  const int nice_;
  const bool is_pinned_;
  OnDone on_done_;
  std::atomic<unsigned> used_{UINT_MAX};
  std::atomic<bool> is_ending_{false};
  std::vector<std::thread> threads_;
};

inline LaneThreads::~LaneThreads() {
  is_ending_ = true;
  executor_.stop();
  for (std::thread& thread : threads_) thread.join();
}

inline void LaneThreads::start(OnDone on_done) {
  on_done_ = std::move(on_done);
  for (unsigned lane = 0; lane < count_; ++lane) {
    threads_.emplace_back([this, lane] { work(lane); });
  }
}

inline void LaneThreads::work(unsigned lane) {
  give_way(nice_);
  if (is_pinned_) pin_to_processor(lane);
  set_float_state();
  const auto deliver = [this](Executor::Ran ran) {
    asio::post(io_, [on_done = on_done_, ran = std::move(ran)]() mutable {
      on_done(ran.generation, Worked{std::move(ran.replies), ran.held_bytes});
    });
  };
  while (!is_ending_) {
    // Read before the look for units, so that no change is missed.
    const std::uint32_t seen = executor_.changes();
    const bool has_run = lane < used_ && executor_.run_next(deliver);
    if (!has_run && !is_ending_) executor_.wait_for_change(seen);
  }
}

}  // namespace gleaner::volunteer

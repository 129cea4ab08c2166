// Threads that perform an executor's units without a hidden layer, and sleep while there are none.
#pragma once

#include <asio/io_context.hpp>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

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

 private:
  void work(unsigned lane);

  asio::io_context& io_;
  Executor& executor_;
  const unsigned count_;
  const int nice_;
  const bool is_pinned_;
  OnDone on_done_;
  std::atomic<bool> is_ending_{false};
  std::vector<std::thread> threads_;
};

}  // namespace gleaner::volunteer

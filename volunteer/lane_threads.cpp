#include "volunteer/lane_threads.hpp"

#include <asio/post.hpp>
#include <utility>

#include "common/float_state.hpp"
#include "common/os/priority.hpp"

namespace gleaner::volunteer {

LaneThreads::~LaneThreads() {
  is_ending_ = true;
  executor_.stop();
  for (std::thread& thread : threads_) thread.join();
}

void LaneThreads::start(OnDone on_done) {
  on_done_ = std::move(on_done);
  for (unsigned lane = 0; lane < count_; ++lane) {
    threads_.emplace_back([this, lane] { work(lane); });
  }
}

void LaneThreads::work(unsigned lane) {
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
    if (!executor_.run_next(deliver) && !is_ending_) executor_.wait_for_change(seen);
  }
}

}  // namespace gleaner::volunteer

#include "master/serving_loop.hpp"

#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <asio/thread_pool.hpp>

namespace gleaner {

void run_while_serving(asio::io_context& io, asio::signal_set& signals,
                       const std::function<void()>& work, const std::function<void()>& on_signal) {
  io.restart();
  signals.async_wait([on_signal](asio::error_code error, int) {
    if (!error) on_signal();
  });
  bool is_over = false;
  asio::thread_pool thread{1};
  asio::post(thread, [&, guard = asio::make_work_guard(io)] {
    work();
    asio::post(io, [&is_over] { is_over = true; });
  });
  while (!is_over) io.run_one();
  signals.cancel();
  // Runs cancelled handlers: afterwards nothing refers to `on_signal` any more.
  io.restart();
  io.poll();
}

}  // namespace gleaner

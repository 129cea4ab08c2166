// Long work after the training, while the I/O thread goes on serving the console.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/signal_set.hpp>
#include <asio/thread_pool.hpp>
#include <functional>

namespace gleaner {

// Runs `work`, which takes long, on a thread of its own, and returns when it is done. Meanwhile the
// calling I/O thread runs `io` and thereby serves the console. A signal calls `on_signal` once, on
// the I/O thread.
inline void run_while_serving(asio::io_context& io, asio::signal_set& signals,
                              const std::function<void()>& work,
                              const std::function<void()>& on_signal) {
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

// The loop that serves during long work; see run_while_serving.
struct ServingLoop {
  asio::io_context& io;
  asio::signal_set& signals;
};

}  // namespace gleaner

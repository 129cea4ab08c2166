// Owned coroutines: every coroutine of a shell belongs to a group, which can be stopped and
// awaited. Everything happens on the executor's one thread.
#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/error_code.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <tuple>

#include "common/time.hpp"

namespace gleaner {

// How our coroutines wait on Asio: errors are values.

// A named object: GCC 12.2 miscompiles some temporaries within a co_await expression.
inline constexpr asio::experimental::as_tuple_t<asio::use_awaitable_t<>> kAsTuple{
    asio::use_awaitable};

using WaitOutcome = std::tuple<asio::error_code>;
using TransferOutcome = std::tuple<asio::error_code, std::size_t>;

class TaskGroup {
 public:
  // Called with a task's name and the sentence of an exception that left it. A task that ends
  // because it was cancelled has not failed. A task that ends for want of memory may leave anything
  // half done: std::bad_alloc then leaves the executor's run instead.
  using FailureHandler = std::function<void(const std::string& task, const std::string& what)>;

  TaskGroup(asio::any_io_executor executor, FailureHandler on_failure);
  // Every task must have ended, or the executor must not run any more.
  ~TaskGroup();
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  // Starts the task, not before this call has returned. Once stop() was called tasks are dropped
  // unstarted.
  void spawn(std::string name, asio::awaitable<void> task);

  // Asks every task to end: whatever it waits for fails with operation_aborted, and so does its
  // next wait, if need be by an exception.
  void cancel();
  // Returns when every task has ended of its own accord or `time_max` is over.
  asio::awaitable<void> wait(Millis time_max);
  // Cancels and returns when every task has ended. Not from a task of the same group.
  asio::awaitable<void> stop();

  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] const asio::any_io_executor& executor() const;

 private:
  struct State;
  struct Waiter;
  static asio::awaitable<void> wait_until_empty(std::shared_ptr<State> state,
                                                asio::steady_timer::time_point deadline);
  std::shared_ptr<State> state_;
};

}  // namespace gleaner

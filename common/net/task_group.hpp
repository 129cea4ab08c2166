// Owned coroutines: every coroutine of a shell belongs to a group, which can be stopped and
// awaited. Everything runs on the executor's one thread.
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

// The completion token of our coroutines: errors are values. It is a named object because GCC 12.2
// miscompiles some temporaries in a co_await expression.
inline constexpr asio::experimental::as_tuple_t<asio::use_awaitable_t<>> kAsTuple{
    asio::use_awaitable};

using WaitOutcome = std::tuple<asio::error_code>;
using TransferOutcome = std::tuple<asio::error_code, std::size_t>;

class TaskGroup {
 public:
  // Called with a task's name and the message of an exception that ended it. A cancelled task has
  // not failed. std::bad_alloc leaves the executor's run() instead, since the task's work may be
  // half done.
  using FailureHandler = std::function<void(const std::string& task, const std::string& what)>;

  TaskGroup(asio::any_io_executor executor, FailureHandler on_failure);
  // Every task must have ended, or the executor must not run any more.
  ~TaskGroup();
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  // Starts the task after this call has returned. After stop() tasks are dropped unstarted.
  void spawn(std::string name, asio::awaitable<void> task);

  // Asks every task to end: its present and its next wait fail with operation_aborted, if necessary
  // by an exception.
  void cancel();
  // Returns when every task has ended by itself or after `time_max`.
  asio::awaitable<void> wait(Millis time_max);
  // Cancels all tasks and returns when they have ended. Not from a task of the same group.
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

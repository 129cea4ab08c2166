#include "common/net/task_group.hpp"

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/post.hpp>
#include <asio/system_error.hpp>
#include <cstdint>
#include <exception>
#include <map>
#include <new>
#include <optional>
#include <utility>
#include <vector>

namespace gleaner {
namespace {

// The message of `failure`; nullopt for a cancelled wait. std::bad_alloc is thrown on.
std::optional<std::string> describe(const std::exception_ptr& failure, bool was_cancelled) {
  try {
    std::rethrow_exception(failure);
  } catch (const asio::system_error& error) {
    if (was_cancelled && error.code() == asio::error::operation_aborted) return std::nullopt;
    return error.what();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

}  // namespace

struct TaskGroup::State {
  State(asio::any_io_executor io, FailureHandler handler)
      : executor(std::move(io)), on_failure(std::move(handler)) {}

  struct Task {
    std::string name;
    asio::cancellation_signal signal;
    bool was_cancelled = false;
  };

  void ended(std::uint64_t id, const std::exception_ptr& failure) {
    const auto task = tasks.extract(id);
    for (asio::steady_timer* waiter : waiters) waiter->cancel();
    if (failure == nullptr) return;
    const auto what = describe(failure, task.mapped().was_cancelled);
    if (what) on_failure(task.mapped().name, *what);
  }

  asio::any_io_executor executor;
  FailureHandler on_failure;
  std::map<std::uint64_t, Task> tasks;
  std::vector<asio::steady_timer*> waiters;  // cancelled when a task has ended
  std::uint64_t next_id = 0;
  bool is_stopping = false;
};

// A timer that is cancelled when a task ends.
struct TaskGroup::Waiter {
  explicit Waiter(State& owner) : state(owner), timer(owner.executor) {
    state.waiters.push_back(&timer);
  }

  ~Waiter() { std::erase(state.waiters, &timer); }

  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  State& state;
  asio::steady_timer timer;
};

const asio::any_io_executor& TaskGroup::executor() const {
  return state_->executor;
}

TaskGroup::TaskGroup(asio::any_io_executor executor, FailureHandler on_failure)
    : state_(std::make_shared<State>(std::move(executor), std::move(on_failure))) {}

TaskGroup::~TaskGroup() = default;

void TaskGroup::spawn(std::string name, asio::awaitable<void> task) {
  if (state_->is_stopping) return;
  const std::uint64_t id = state_->next_id++;
  State::Task& entry = state_->tasks[id];
  entry.name = std::move(name);
  auto on_end = [state = state_, id](const std::exception_ptr& failure) {
    // Posted, since the coroutine's last steps after this handler still use the signal.
    asio::post(state->executor, [state, id, failure] { state->ended(id, failure); });
  };
  asio::co_spawn(state_->executor, std::move(task),
                 asio::bind_cancellation_slot(entry.signal.slot(), std::move(on_end)));
}

void TaskGroup::cancel() {
  for (auto& [id, task] : state_->tasks) {
    task.was_cancelled = true;
    task.signal.emit(asio::cancellation_type::terminal);
  }
}

asio::awaitable<void> TaskGroup::wait(Millis time_max) {
  return wait_until_empty(state_, asio::steady_timer::clock_type::now() + time_max);
}

asio::awaitable<void> TaskGroup::stop() {
  state_->is_stopping = true;
  cancel();
  return wait_until_empty(state_, asio::steady_timer::time_point::max());
}

asio::awaitable<void> TaskGroup::wait_until_empty(std::shared_ptr<State> state,
                                                  asio::steady_timer::time_point deadline) {
  Waiter waiter(*state);
  while (!state->tasks.empty()) {
    waiter.timer.expires_at(deadline);
    const WaitOutcome outcome = co_await waiter.timer.async_wait(kAsTuple);
    if (!std::get<0>(outcome)) break;
  }
}

std::size_t TaskGroup::size() const {
  return state_->tasks.size();
}

}  // namespace gleaner

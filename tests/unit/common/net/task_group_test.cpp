#include "common/net/task_group.hpp"

#include <asio/post.hpp>
#include <asio/this_coro.hpp>
#include <catch2/catch.hpp>
#include <new>
#include <stdexcept>
#include <vector>

#include "tests/unit/common/net/io_fixture.hpp"

namespace gleaner {
namespace {

constexpr auto kForever = std::chrono::hours(10);

struct Group {
  explicit Group(asio::io_context& io)
      : tasks(io.get_executor(), [this](const std::string& task, const std::string& what) {
          failures.push_back(task + ": " + what);
        }) {}

  std::vector<std::string> failures;
  TaskGroup tasks;
};

// Counts those that exist, to see that frames are destroyed exactly once.
struct Counted {
  explicit Counted(int& number) : count(number) { ++count; }

  ~Counted() { --count; }

  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  int& count;
};

asio::awaitable<void> wait_for_ever(int& alive, bool& was_cancelled) {
  const Counted counted(alive);
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  asio::steady_timer timer(executor);
  timer.expires_after(kForever);
  const WaitOutcome outcome = co_await timer.async_wait(kAsTuple);
  was_cancelled = std::get<0>(outcome) == asio::error::operation_aborted;
}

asio::awaitable<void> ignore_cancellation(int& rounds) {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  asio::steady_timer timer(executor);
  while (true) {
    ++rounds;
    timer.expires_after(kForever);
    const WaitOutcome outcome = co_await timer.async_wait(kAsTuple);
    static_cast<void>(outcome);
  }
}

asio::awaitable<void> count_up(int& counter) {
  ++counter;
  co_return;
}

asio::awaitable<void> throw_up(std::string what) {
  co_await asio::post(asio::use_awaitable);
  throw std::runtime_error(what);
}

asio::awaitable<void> run_out_of_memory() {
  co_await asio::post(asio::use_awaitable);
  throw std::bad_alloc();
}

asio::awaitable<void> stop(TaskGroup& tasks) {
  co_await tasks.stop();
}

asio::awaitable<void> wait(TaskGroup& tasks, Millis time_max) {
  co_await tasks.wait(time_max);
}

}  // namespace

TEST_CASE("task group: stop cancels every task and returns when they have ended", "[task_group]") {
  asio::io_context io;
  Group group(io);
  int alive = 0;
  bool was_cancelled[3] = {};
  for (bool& flag : was_cancelled) group.tasks.spawn("waiter", wait_for_ever(alive, flag));
  io.poll();
  REQUIRE(alive == 3);
  testing::run_to_end(io, stop(group.tasks));
  REQUIRE(group.tasks.size() == 0);
  REQUIRE(alive == 0);
  for (const bool flag : was_cancelled) REQUIRE(flag);
  REQUIRE(group.failures.empty());
}

TEST_CASE("task group: a task that overlooks its cancellation ends at its next wait",
          "[task_group]") {
  asio::io_context io;
  Group group(io);
  int rounds = 0;
  group.tasks.spawn("stubborn", ignore_cancellation(rounds));
  io.poll();
  testing::run_to_end(io, stop(group.tasks));
  REQUIRE(rounds == 2);
  REQUIRE(group.failures.empty());
}

TEST_CASE("task group: exceptions are reported with the task's name", "[task_group]") {
  asio::io_context io;
  Group group(io);
  group.tasks.spawn("first", throw_up("out of luck"));
  testing::run_to_end(io, wait(group.tasks, Millis(60'000)));
  REQUIRE(group.tasks.size() == 0);
  REQUIRE(group.failures == std::vector<std::string>{"first: out of luck"});
}

TEST_CASE("task group: want of memory leaves the executor, not a report", "[task_group]") {
  asio::io_context io;
  Group group(io);
  group.tasks.spawn("first", run_out_of_memory());
  REQUIRE_THROWS_AS(io.run(), std::bad_alloc);
  io.run();
  REQUIRE(group.tasks.size() == 0);
  REQUIRE(group.failures.empty());
}

TEST_CASE("task group: wait gives up when its time is over", "[task_group]") {
  asio::io_context io;
  Group group(io);
  int alive = 0;
  bool was_cancelled = false;
  group.tasks.spawn("waiter", wait_for_ever(alive, was_cancelled));
  bool has_returned = false;
  asio::co_spawn(io, wait(group.tasks, Millis(5)),
                 [&](const std::exception_ptr&) { has_returned = true; });
  while (!has_returned) io.run_one();
  REQUIRE(group.tasks.size() == 1);
  testing::run_to_end(io, stop(group.tasks));
}

TEST_CASE("task group: a stopped group starts nothing", "[task_group]") {
  asio::io_context io;
  Group group(io);
  int counter = 0;
  group.tasks.spawn("before", count_up(counter));
  REQUIRE(counter == 0);
  io.poll();
  REQUIRE(counter == 1);
  io.restart();
  testing::run_to_end(io, stop(group.tasks));
  group.tasks.spawn("after", count_up(counter));
  io.restart();
  io.run();
  REQUIRE(counter == 1);
}

TEST_CASE("task group: an executor that is gone takes its tasks with it", "[task_group]") {
  int alive = 0;
  bool was_cancelled = false;
  {
    asio::io_context io;
    Group group(io);
    group.tasks.spawn("waiter", wait_for_ever(alive, was_cancelled));
    io.poll();
    REQUIRE(alive == 1);
  }
  REQUIRE(alive == 0);
}

}  // namespace gleaner

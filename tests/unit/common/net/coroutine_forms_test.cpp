// The forms of co_await that this code base uses. GCC 12.2 miscompiles others: a co_await within a
// condition, or in one expression with a temporary that is a capturing lambda, a braced aggregate
// or a braced list. Under AddressSanitizer this test shows that ours destroy everything once.
#include <asio/awaitable.hpp>
#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/net/task_group.hpp"
#include "common/result.hpp"
#include "tests/unit/common/net/io_fixture.hpp"

namespace gleaner {
namespace {

// Owns memory, so that a double destruction is seen, and counts itself.
struct Tracked {
  Tracked(std::string name, int& number) : text(std::move(name)), count(&number) { ++*count; }

  Tracked(const Tracked& other) : text(other.text), count(other.count) { ++*count; }

  Tracked& operator=(const Tracked&) = default;

  ~Tracked() { --*count; }

  std::string text;
  int* count;
};

struct Request {
  std::string name;
  std::vector<int> values;
};

constexpr const char* kLong = "a text that is too long for the small string buffer";

asio::awaitable<Tracked> make(std::string name, int& count) {
  co_await asio::post(asio::use_awaitable);
  co_return Tracked(std::move(name), count);
}

asio::awaitable<Result<std::string>> answer(Request request) {
  co_await asio::post(asio::use_awaitable);
  if (request.values.empty()) co_return Error{ErrorCode::kNotFound, request.name};
  co_return request.name + kLong;
}

asio::awaitable<int> call(std::function<int()> function) {
  co_await asio::post(asio::use_awaitable);
  co_return function();
}

asio::awaitable<void> standing_alone(int& count) {
  const Tracked local(kLong, count);
  co_await asio::post(asio::use_awaitable);
  REQUIRE(local.text == kLong);
}

asio::awaitable<void> initialising_a_named_variable(int& count) {
  const Tracked made = co_await make(kLong, count);
  REQUIRE(made.text == kLong);
  REQUIRE(count == 1);
}

asio::awaitable<void> assigning_to_a_named_variable(int& count) {
  Tracked made("first", count);
  for (int i = 0; i < 3; ++i) made = co_await make(kLong + std::to_string(i), count);
  REQUIRE(made.text == std::string(kLong) + "2");
  REQUIRE(count == 1);
}

asio::awaitable<void> with_a_named_aggregate(int&) {
  const Request request{kLong, {1, 2, 3}};
  const Result<std::string> good = co_await answer(request);
  REQUIRE(good.ok());
  const Request empty{kLong, {}};
  const Result<std::string> bad = co_await answer(empty);
  REQUIRE_FALSE(bad.ok());
  REQUIRE(bad.error().message == kLong);
}

asio::awaitable<void> with_a_named_lambda(int& count) {
  const Tracked captured(kLong, count);
  const std::function<int()> function = [captured] {
    return static_cast<int>(captured.text.size());
  };
  const int size = co_await call(function);
  REQUIRE(size == static_cast<int>(std::string(kLong).size()));
}

asio::awaitable<void> testing_a_named_variable(int& count) {
  int turns = 0;
  while (true) {
    const Tracked made = co_await make(kLong, count);
    if (made.text.size() + static_cast<std::size_t>(turns) > std::string(kLong).size() + 3) break;
    ++turns;
  }
  REQUIRE(turns == 4);
}

asio::awaitable<void> with_the_tuple_token(int&) {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  asio::steady_timer timer(executor);
  timer.expires_after(std::chrono::microseconds(1));
  const WaitOutcome outcome = co_await timer.async_wait(kAsTuple);
  REQUIRE_FALSE(std::get<0>(outcome));
}

}  // namespace

TEST_CASE("coroutines: the forms in use destroy everything exactly once", "[coroutine]") {
  using Form = asio::awaitable<void> (*)(int&);
  const Form forms[] = {
      standing_alone,         initialising_a_named_variable, assigning_to_a_named_variable,
      with_a_named_aggregate, with_a_named_lambda,           testing_a_named_variable,
      with_the_tuple_token};
  for (const Form form : forms) {
    asio::io_context io;
    int count = 0;
    testing::run_to_end(io, form(count));
    REQUIRE(count == 0);
  }
}

}  // namespace gleaner

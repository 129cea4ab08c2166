#include "common/net/connect.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "common/net/task_group.hpp"
#include "tests/unit/common/net/io_fixture.hpp"

namespace gleaner {
namespace {

constexpr Millis kPatience{20'000};

asio::awaitable<void> connect(HostPort target, Millis time_max,
                              std::optional<Result<asio::ip::tcp::socket>>& out) {
  Result<asio::ip::tcp::socket> socket = co_await resolve_and_connect(target, time_max);
  out.emplace(std::move(socket));
}

std::optional<Result<asio::ip::tcp::socket>> connect_now(asio::io_context& io, HostPort target,
                                                         Millis time_max = kPatience) {
  std::optional<Result<asio::ip::tcp::socket>> socket;
  testing::run_to_end(io, connect(std::move(target), time_max, socket));
  io.restart();
  return socket;
}

}  // namespace

TEST_CASE("connect: a listener on a port of the system's choice is reached", "[connect]") {
  asio::io_context io;
  auto acceptor = listen(io.get_executor(), HostPort{"127.0.0.1", 0});
  REQUIRE(acceptor.ok());
  const std::uint16_t port = acceptor->local_endpoint().port();
  REQUIRE(port != 0);
  const auto socket = connect_now(io, HostPort{"127.0.0.1", port});
  REQUIRE(socket->ok());
  REQUIRE(remote_text(socket->value()) == to_text(HostPort{"127.0.0.1", port}));
}

TEST_CASE("connect: a closed port is refused by name", "[connect]") {
  asio::io_context io;
  std::uint16_t port = 0;
  {
    auto acceptor = listen(io.get_executor(), HostPort{"127.0.0.1", 0});
    port = acceptor->local_endpoint().port();
  }
  const auto socket = connect_now(io, HostPort{"127.0.0.1", port});
  REQUIRE_FALSE(socket->ok());
  REQUIRE(socket->error().code == ErrorCode::kIo);
  REQUIRE(socket->error().message == to_text(HostPort{"127.0.0.1", port}) + ": Connection refused");
}

TEST_CASE("connect: a host that does not answer is given up in time", "[connect]") {
  asio::io_context io;
  asio::ip::tcp::acceptor full(io, asio::ip::tcp::v4());
  full.bind({asio::ip::address_v4::loopback(), 0});
  full.listen(0);
  // Connections that nobody accepts fill its queue; whoever comes then hears nothing.
  std::vector<asio::ip::tcp::socket> waiting;
  for (int i = 0; i < 4; ++i) {
    waiting.emplace_back(io);
    waiting.back().async_connect(full.local_endpoint(), [](asio::error_code) {});
  }
  io.poll();
  const HostPort target{"127.0.0.1", full.local_endpoint().port()};
  std::optional<Result<asio::ip::tcp::socket>> socket;
  asio::co_spawn(io, connect(target, Millis(50), socket), [](const std::exception_ptr&) {});
  while (!socket) io.run_one();
  REQUIRE_FALSE(socket->ok());
  REQUIRE(socket->error().message == to_text(target) + ": no answer within 50 ms");
}

TEST_CASE("connect: port 0 and names that cannot exist are refused", "[connect]") {
  asio::io_context io;
  REQUIRE_FALSE(connect_now(io, HostPort{"127.0.0.1", 0})->ok());
  const auto unknown = connect_now(io, HostPort{"bad..name", 1});
  REQUIRE_FALSE(unknown->ok());
  REQUIRE(unknown->error().message.find("bad..name:1: cannot resolve the name") == 0);
}

TEST_CASE("listen: a taken port is refused with the remedy", "[connect]") {
  asio::io_context io;
  auto first = listen(io.get_executor(), HostPort{"127.0.0.1", 0});
  REQUIRE(first.ok());
  const auto second =
      listen(io.get_executor(), HostPort{"127.0.0.1", first->local_endpoint().port()});
  REQUIRE_FALSE(second.ok());
  REQUIRE(second.error().code == ErrorCode::kBusy);
  REQUIRE(second.error().message.find("choose another port") != std::string::npos);
}

TEST_CASE("listen: an address of another machine is refused", "[connect]") {
  asio::io_context io;
  const auto acceptor = listen(io.get_executor(), HostPort{"192.0.2.1", 0});
  REQUIRE_FALSE(acceptor.ok());
  REQUIRE(acceptor.error().message.find("192.0.2.1:0: cannot listen") == 0);
}

}  // namespace gleaner

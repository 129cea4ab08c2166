#include "common/net/connect.hpp"

#include <catch2/catch.hpp>

#include "common/net/tokens.hpp"
#include "tests/unit/net/io_fixture.hpp"

namespace gleaner {
namespace {

constexpr Millis kPatience{20'000};

asio::awaitable<void> connect(HostPort target, std::optional<Result<asio::ip::tcp::socket>>& out) {
  Result<asio::ip::tcp::socket> socket = co_await resolve_and_connect(target, kPatience);
  out.emplace(std::move(socket));
}

std::optional<Result<asio::ip::tcp::socket>> connect_now(asio::io_context& io, HostPort target) {
  std::optional<Result<asio::ip::tcp::socket>> socket;
  testing::run_to_end(io, connect(std::move(target), socket));
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

// Runs coroutines on one thread until they end, and pairs of connected sockets on loopback.
#pragma once

#include <asio/co_spawn.hpp>
#include <asio/connect.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <catch2/catch.hpp>
#include <exception>
#include <optional>
#include <utility>

#include "common/net/frame.hpp"

namespace gleaner::testing {

// The payload as it travels.
inline Bytes framed(const Bytes& payload) {
  const auto header = frame_header(payload);
  Bytes bytes;
  bytes.reserve(header.size() + payload.size());
  for (const std::uint8_t byte : header) bytes.push_back(byte);
  for (const std::uint8_t byte : payload) bytes.push_back(byte);
  return bytes;
}

// Runs until `task` and everything it left behind has ended. Exceptions fail the test.
inline void run_to_end(asio::io_context& io, asio::awaitable<void> task) {
  std::exception_ptr failure;
  bool has_ended = false;
  asio::co_spawn(io, std::move(task), [&](std::exception_ptr thrown) {
    failure = thrown;
    has_ended = true;
  });
  io.run();
  if (failure) std::rethrow_exception(failure);
  REQUIRE(has_ended);
}

struct SocketPair {
  explicit SocketPair(asio::io_context& io) : a(io), b(io) {
    const asio::ip::tcp::endpoint any_port(asio::ip::address_v4::loopback(), 0);
    asio::ip::tcp::acceptor acceptor(io, any_port);
    a.connect(acceptor.local_endpoint());
    acceptor.accept(b);
  }

  asio::ip::tcp::socket a;
  asio::ip::tcp::socket b;
};

}  // namespace gleaner::testing

// One FramedSocket that reads, and the bare socket at its other end.
#pragma once

#include <asio/post.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <catch2/catch.hpp>
#include <vector>

#include "common/net/framed_socket.hpp"
#include "common/net/task_group.hpp"
#include "tests/unit/common/net/io_fixture.hpp"

namespace gleaner {

using testing::framed;

inline constexpr Millis kReadPatience{20'000};
inline constexpr Millis kMoment{5};

inline Bytes payload_of(std::size_t size) {
  Bytes payload(size);
  for (std::size_t i = 0; i < size; ++i) payload[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
  return payload;
}

// Everything that a reader got: payloads, then the error that ended it.
struct Seen {
  std::vector<Bytes> payloads;
  std::string error;
  ErrorCode code{};
};

inline asio::awaitable<void> read_all(FramedSocket& socket, Millis time_max, std::size_t bytes_max,
                                      Seen& seen) {
  while (true) {
    Result<Bytes> payload = co_await socket.read_frame(time_max, bytes_max);
    if (!payload) {
      seen.error = payload.error().message;
      seen.code = payload.error().code;
      co_return;
    }
    seen.payloads.push_back(std::move(*payload));
  }
}

// Writes the bytes in pieces, then closes.
inline asio::awaitable<void> write_pieces(asio::ip::tcp::socket& socket, Bytes bytes,
                                          std::size_t piece) {
  for (std::size_t i = 0; i < bytes.size(); i += piece) {
    const auto part = asio::buffer(bytes.data() + i, std::min(piece, bytes.size() - i));
    const TransferOutcome written = co_await asio::async_write(socket, part, kAsTuple);
    REQUIRE_FALSE(std::get<0>(written));
    co_await asio::post(asio::use_awaitable);
  }
  socket.close();
}

// One FramedSocket that reads, and the bare socket at the other end.
struct Reader {
  explicit Reader(Millis header_time = kReadPatience, std::size_t bytes_max = kFrameBytesMax,
                  FramedSocketLimits limits = {})
      : pair(io), framed_socket(std::move(pair.a), limits), far(std::move(pair.b)) {
    asio::co_spawn(io, read_all(framed_socket, header_time, bytes_max, seen),
                   [](const std::exception_ptr& thrown) {
                     if (thrown) std::rethrow_exception(thrown);
                   });
  }

  Seen& read(const Bytes& bytes, std::size_t piece) {
    testing::run_to_end(io, write_pieces(far, bytes, piece));
    return seen;
  }

  // The far end sends this and stays silent.
  Seen& read_without_end(const Bytes& bytes) {
    asio::write(far, asio::buffer(bytes));
    io.run();
    return seen;
  }

  asio::io_context io;
  testing::SocketPair pair;
  FramedSocket framed_socket;
  asio::ip::tcp::socket far;
  Seen seen;
};

}  // namespace gleaner

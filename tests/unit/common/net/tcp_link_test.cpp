#include "common/net/tcp_link.hpp"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <asio/write.hpp>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "common/net/connect.hpp"
#include "tests/support/watched_memory.hpp"
#include "tests/unit/common/net/io_fixture.hpp"

namespace gleaner {
namespace {

using testing::framed;

// A link at one end, a bare socket at the other.
struct LinkAndPeer {
  explicit LinkAndPeer(const TcpLinkOptions& options = {})
      : pair(io), tasks(io.get_executor(), [](const std::string&, const std::string&) {}) {
    link = make_tcp_link(std::move(pair.a), options, tasks);
    Link::Handler handler;
    handler.on_frame = [this](Bytes payload, std::size_t) { frames.push_back(payload); };
    handler.on_closed = [this](const std::string& reason) { closed.push_back(reason); };
    handler.on_sent = [this] { waiting.push_back(link->bytes_waiting()); };
    link->start(std::move(handler));
  }

  asio::io_context io;
  testing::SocketPair pair;
  TaskGroup tasks;
  std::shared_ptr<Link> link;
  std::vector<Bytes> frames;
  std::vector<std::string> closed;
  std::vector<std::size_t> waiting;  // whenever something has left
};

}  // namespace

TEST_CASE("tcp link: a reset at any byte ends it once, with what was whole delivered",
          "[tcp_link]") {
  const Bytes first(3, 1), second(9, 2);
  Bytes stream = framed(first);
  const std::size_t whole = stream.size();
  const Bytes rest = framed(second);
  stream.insert(stream.end(), rest.begin(), rest.end());
  for (std::size_t cut = 0; cut < stream.size(); ++cut) {
    LinkAndPeer ends;
    asio::write(ends.pair.b, asio::buffer(stream.data(), cut));
    while (ends.frames.size() < (cut >= whole ? 1u : 0u)) ends.io.run_one();
    ends.pair.b.set_option(asio::socket_base::linger(true, 0));
    ends.pair.b.close();
    ends.io.run();
    REQUIRE(ends.closed.size() == 1);
    REQUIRE(ends.frames.size() == (cut >= whole ? 1u : 0u));
  }
}

TEST_CASE("tcp link: a peer that does not read is let go at the queue's bound, in words",
          "[tcp_link]") {
  TcpLinkOptions options;
  options.limits.send_queue_bytes_max = 1 << 20;
  LinkAndPeer ends(options);
  for (int i = 0; i < 1000 && ends.closed.empty(); ++i) {
    ends.link->send(Bytes(300'000, 1), Lane::kOrdered);
    ends.io.poll();
    ends.io.restart();
  }
  REQUIRE(ends.closed.size() == 1);
  REQUIRE_THAT(ends.closed[0], Catch::StartsWith("the peer is too slow"));
}

TEST_CASE("tcp link: its owner learns when what was queued has left", "[tcp_link]") {
  LinkAndPeer ends;
  ends.link->send(Bytes(3'000'000, 1), Lane::kOrdered);
  ends.link->send(Bytes(3'000'000, 1), Lane::kOrdered);
  REQUIRE(ends.link->bytes_waiting() > 6'000'000);
  Bytes taken(1 << 20);
  while (ends.link->bytes_waiting() > 0) {
    ends.pair.b.read_some(asio::buffer(taken));
    ends.io.poll();
    ends.io.restart();
  }
  REQUIRE_FALSE(ends.waiting.empty());
  REQUIRE(ends.waiting.back() == 0);
}

TEST_CASE("tcp link: what comes while its owner does not listen waits, and the end with it",
          "[tcp_link]") {
  LinkAndPeer ends;
  const auto poll = [&] {
    ends.io.poll();
    ends.io.restart();
  };
  ends.link->set_listening(false);
  const Bytes stream = framed(Bytes(3, 1));
  asio::write(ends.pair.b, asio::buffer(stream));
  for (int i = 0; i < 10; ++i) poll();
  REQUIRE(ends.frames.empty());
  ends.link->set_listening(true);
  while (ends.frames.empty()) poll();
  ends.link->set_listening(false);
  asio::write(ends.pair.b, asio::buffer(stream));
  ends.pair.b.close();
  ends.link->set_listening(true);
  ends.io.run();
  REQUIRE(ends.frames.size() == 2);
  REQUIRE(ends.closed.size() == 1);
}

TEST_CASE("tcp link: last words arrive though the peer sends, and frames before them are under way",
          "[tcp_link]") {
  LinkAndPeer ends;
  const Bytes large(8'000'000, 1);
  ends.link->send(large, Lane::kOrdered);  // more than the kernel takes at once
  ends.link->send(Bytes(9, 2), Lane::kOrdered);
  ends.link->close();
  const Bytes stream = framed(Bytes(3, 1));
  asio::write(ends.pair.b, asio::buffer(stream));
  asio::write(ends.pair.b, asio::buffer(stream));
  while (ends.closed.empty()) ends.io.run_one();
  Bytes received;
  Bytes piece(1 << 20);
  asio::error_code error;
  while (!error) {
    ends.io.poll();
    ends.io.restart();
    const std::size_t got = ends.pair.b.read_some(asio::buffer(piece), error);
    received.insert(received.end(), piece.begin(), piece.begin() + static_cast<long>(got));
  }
  REQUIRE(error == asio::error::eof);
  const Bytes last = framed(Bytes(9, 2));
  REQUIRE(received.size() == large.size() + kFrameHeaderBytes + last.size());
  REQUIRE(std::equal(last.rbegin(), last.rend(), received.rbegin()));
}

TEST_CASE("tcp link: whoever does not listen hears the last words of a peer that has gone",
          "[tcp_link]") {
  TcpLinkOptions options;
  options.limits.linger_max = Millis(3000);
  LinkAndPeer ends(options);
  ends.io.poll();
  ends.link->send(Bytes(5, 1), Lane::kOrdered);
  ends.link->set_listening(false);
  ends.io.restart();
  ends.io.poll();
  // One frame is read before the owner's wish counts; the next waits.
  const Bytes stream = framed(Bytes(3, 1));
  asio::write(ends.pair.b, asio::buffer(stream));
  while (ends.frames.empty()) ends.io.run_one();
  asio::write(ends.pair.b, asio::buffer(stream));
  ends.pair.b.close();  // with bytes unread: the kernel resets the connection
  ends.link->send(Bytes(5, 1), Lane::kOrdered);
  ends.io.restart();
  while (ends.closed.empty()) ends.io.run_one();
  REQUIRE(ends.frames.size() == 2);
}

TEST_CASE("tcp link: a frame for which there is no memory ends it in words", "[tcp_link]") {
  LinkAndPeer ends;
  const Bytes stream = framed(Bytes(1'000'000, 1));
  asio::async_write(ends.pair.b, asio::buffer(stream), [](asio::error_code, std::size_t) {});
  const test::ScarceMemory scarce(500'000);
  while (ends.closed.empty()) ends.io.run_one();
  REQUIRE(ends.closed == std::vector<std::string>{"there is no memory for what arrives"});
  REQUIRE(ends.frames.empty());
}

TEST_CASE("tcp link: whether somebody listens is known in words", "[tcp_link]") {
  asio::io_context io;
  auto acceptor = listen(io.get_executor(), {"127.0.0.1", 0});
  const HostPort where{"127.0.0.1", acceptor->local_endpoint().port()};
  REQUIRE(reach_tcp(where, Millis(5'000), {}).ok());
  acceptor->close();
  REQUIRE(reach_tcp(where, Millis(5'000), {}).error().message ==
          to_text(where) + ": Connection refused");
}

TEST_CASE("tcp link: silence ends it", "[tcp_link]") {
  TcpLinkOptions options;
  options.silence_max = Millis(5);
  LinkAndPeer ends(options);
  ends.io.run();
  REQUIRE(ends.closed == std::vector<std::string>{"nothing came for 5 ms"});
}

TEST_CASE("tcp link: the kernel watches for a peer that is gone, also while only sending",
          "[tcp_link]") {
  asio::io_context io;
  testing::SocketPair pair(io);
  const int descriptor = pair.a.native_handle();
  FramedSocketLimits limits;
  limits.frame_time_max = Millis(12'345);
  FramedSocket socket(std::move(pair.a), limits);
  const auto option = [&](int level, int name) {
    int value = 0;
    socklen_t size = sizeof value;
    REQUIRE(getsockopt(descriptor, level, name, &value, &size) == 0);
    return value;
  };
  REQUIRE(option(SOL_SOCKET, SO_KEEPALIVE) != 0);
  REQUIRE(option(IPPROTO_TCP, TCP_KEEPIDLE) == 10);
  REQUIRE(option(IPPROTO_TCP, TCP_KEEPINTVL) == 10);
  REQUIRE(option(IPPROTO_TCP, TCP_USER_TIMEOUT) == 12'345);
}

}  // namespace gleaner

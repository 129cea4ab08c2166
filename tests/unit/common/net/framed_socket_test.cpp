#include "common/net/framed_socket.hpp"

#include <asio/post.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <catch2/catch.hpp>
#include <vector>

#include "common/net/task_group.hpp"
#include "tests/unit/common/net/io_fixture.hpp"
#include "tests/unit/common/net/socket_reader.hpp"

namespace gleaner {

TEST_CASE("framed socket: frames cut anywhere arrive whole", "[framed_socket]") {
  Bytes stream;
  const std::vector<Bytes> payloads{payload_of(1), payload_of(300), payload_of(5)};
  for (const Bytes& payload : payloads) {
    const Bytes frame = framed(payload);
    stream.insert(stream.end(), frame.begin(), frame.end());
  }
  for (const std::size_t piece : {1u, 3u, 8u, 9u, 1000u}) {
    Reader reader;
    const Seen& seen = reader.read(stream, piece);
    REQUIRE(seen.payloads == payloads);
    REQUIRE(seen.error == "the peer closed the connection");
    REQUIRE(reader.framed_socket.bytes_in() == stream.size());
    REQUIRE_FALSE(reader.framed_socket.is_open());
  }
}

TEST_CASE("framed socket: a large frame is read in growing steps", "[framed_socket]") {
  const Bytes payload = payload_of(700'001);
  Reader reader;
  REQUIRE(reader.read(framed(payload), 50'000).payloads == std::vector<Bytes>{payload});
}

TEST_CASE("framed socket: an end within a frame is told from one between frames",
          "[framed_socket]") {
  const Bytes frame = framed(payload_of(20));
  for (const std::size_t kept : {3u, 8u, 27u}) {
    Reader reader;
    const Bytes cut(frame.begin(), frame.begin() + static_cast<long>(kept));
    REQUIRE(reader.read(cut, 100).error == "the connection ended within a frame");
  }
}

TEST_CASE("framed socket: a damaged frame closes the connection", "[framed_socket]") {
  Bytes frame = framed(payload_of(20));
  frame[15] ^= 4;
  Reader reader;
  const Seen& seen = reader.read(frame, 100);
  REQUIRE(seen.payloads.empty());
  REQUIRE(seen.code == ErrorCode::kCorrupt);
  REQUIRE(seen.error == reader.framed_socket.close_reason());
}

TEST_CASE("framed socket: claims beyond the limits are refused before anything is read",
          "[framed_socket]") {
  SECTION("beyond any frame") {
    Reader reader;
    const Seen& seen = reader.read({0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}, 8);
    REQUIRE(seen.code == ErrorCode::kProtocol);
    REQUIRE(reader.framed_socket.bytes_in() == 8);
  }
  SECTION("beyond what is expected at this point") {
    Reader reader(kReadPatience, 100);
    const Seen& seen = reader.read(framed(payload_of(101)), 1000);
    REQUIRE(seen.code == ErrorCode::kProtocol);
    REQUIRE(seen.error == "a frame of 101 bytes where at most 100 are expected");
  }
  SECTION("just what is expected") {
    Reader reader(kReadPatience, 100);
    REQUIRE(reader.read(framed(payload_of(100)), 1000).payloads.size() == 1);
  }
}

TEST_CASE("framed socket: a silent peer is closed at the deadline", "[framed_socket]") {
  Reader reader(kMoment);
  REQUIRE(reader.read_without_end({}).error == "nothing came for 5 ms");
}

TEST_CASE("framed socket: half a header counts as silence", "[framed_socket]") {
  Reader reader(kMoment);
  REQUIRE(reader.read_without_end({5, 0, 0}).error == "nothing came for 5 ms");
}

TEST_CASE("framed socket: a trickling frame is closed at the frame's own deadline",
          "[framed_socket]") {
  FramedSocketLimits limits;
  limits.frame_time_max = kMoment;
  Reader reader(kReadPatience, kFrameBytesMax, limits);
  Bytes cut = framed(payload_of(50));
  cut.pop_back();
  // 50 bytes at 16 KiB/s add 3 ms.
  REQUIRE(reader.read_without_end(cut).error == "a frame was incomplete for 8 ms");
}

TEST_CASE("framed socket: two ends exchange frames and count the same bytes", "[framed_socket]") {
  asio::io_context io;
  testing::SocketPair pair(io);
  FramedSocket a(std::move(pair.a), {});
  FramedSocket b(std::move(pair.b), {});
  const auto shared = std::make_shared<const Bytes>(payload_of(100'000));
  for (int i = 0; i < 40; ++i) REQUIRE(a.send(shared));
  REQUIRE(a.send(payload_of(9)));
  a.finish("done");
  REQUIRE_FALSE(a.send(payload_of(9)));
  Seen seen;
  testing::run_to_end(io, read_all(b, kReadPatience, kFrameBytesMax, seen));
  REQUIRE(seen.payloads.size() == 41);
  REQUIRE(seen.payloads[39] == *shared);
  REQUIRE(seen.payloads[40] == payload_of(9));
  REQUIRE(seen.error == "the peer closed the connection");
  REQUIRE(a.bytes_out() == 40 * (100'000 + kFrameHeaderBytes) + 9 + kFrameHeaderBytes);
  REQUIRE(b.bytes_in() == a.bytes_out());
  REQUIRE(a.bytes_waiting() == 0);
  REQUIRE_FALSE(a.is_open());
  REQUIRE(a.close_reason() == "done");
}

TEST_CASE("framed socket: urgent frames go before ordered ones that have not begun to leave",
          "[framed_socket]") {
  asio::io_context io;
  testing::SocketPair pair(io);
  FramedSocket a(std::move(pair.a), {});
  FramedSocket b(std::move(pair.b), {});
  // The first leaves at once.
  for (std::size_t size = 101; size <= 104; ++size) REQUIRE(a.send(payload_of(size)));
  REQUIRE(a.send(payload_of(11), Lane::kUrgent));
  REQUIRE(a.send(payload_of(12), Lane::kUrgent));
  a.finish("done");
  Seen seen;
  testing::run_to_end(io, read_all(b, kReadPatience, kFrameBytesMax, seen));
  std::vector<std::size_t> sizes;
  for (const Bytes& payload : seen.payloads) sizes.push_back(payload.size());
  REQUIRE(sizes == std::vector<std::size_t>{101, 11, 12, 102, 103, 104});
}

TEST_CASE("framed socket: the kernel is not given what it cannot send, so urgent frames are early",
          "[framed_socket]") {
  asio::io_context io;
  testing::SocketPair pair(io);
  FramedSocket a(std::move(pair.a), {});
  FramedSocket b(std::move(pair.b), {});
  const auto bulk = std::make_shared<const Bytes>(payload_of(100'000));
  for (int i = 0; i < 200; ++i) REQUIRE(a.send(bulk));
  io.poll();  // as much as the connection takes while nobody reads
  io.restart();
  const std::size_t in_kernels = 200 * (bulk->size() + kFrameHeaderBytes) - a.bytes_waiting();
  REQUIRE(a.bytes_waiting() > 0);
  REQUIRE(a.send(payload_of(5), Lane::kUrgent));
  a.finish("done");
  Seen seen;
  testing::run_to_end(io, read_all(b, kReadPatience, kFrameBytesMax, seen));
  REQUIRE(seen.payloads.size() == 201);
  std::size_t before = 0;
  while (seen.payloads[before].size() != 5) ++before;
  // Ordered frames that had left, and the frame that was leaving.
  REQUIRE(before <= in_kernels / bulk->size() + 1);
}

TEST_CASE("framed socket: a pacer holds back what is sent and what is read", "[framed_socket]") {
  for (const bool is_sender : {true, false}) {
    asio::io_context io;
    testing::SocketPair pair(io);
    FramedSocketLimits paced;
    (is_sender ? paced.pace_out : paced.pace_in) = std::make_shared<Pacer>(10'000'000);
    FramedSocket a(std::move(pair.a), is_sender ? paced : FramedSocketLimits{});
    FramedSocket b(std::move(pair.b), is_sender ? FramedSocketLimits{} : paced);
    const Instant start = monotonic_now();
    for (int i = 0; i < 11; ++i) REQUIRE(a.send(payload_of(50'000)));
    a.finish("done");
    Seen seen;
    testing::run_to_end(io, read_all(b, kReadPatience, kFrameBytesMax, seen));
    REQUIRE(seen.payloads.size() == 11);
    // Ten frames of 5 ms each before the last may begin; how much later it is says nothing.
    REQUIRE(monotonic_now() - start >= Millis(50));
  }
}

TEST_CASE("pacer: time in which nothing passed is not saved up", "[framed_socket]") {
  Pacer pacer(1'000'000);
  REQUIRE(pacer.ready() <= Instant(Millis(1)));
  pacer.spend(5'000, Instant(Millis(100)));
  REQUIRE(pacer.ready() == Instant(Millis(105)));
  pacer.spend(5'000, Instant(Millis(101)));
  REQUIRE(pacer.ready() == Instant(Millis(110)));
  pacer.spend(1'000, Instant(Millis(500)));
  REQUIRE(pacer.ready() == Instant(Millis(501)));
  REQUIRE(make_pacer(std::nullopt) == nullptr);
  const auto megabit = make_pacer(8);
  megabit->spend(1'000, Instant(Millis(1)));
  REQUIRE(megabit->ready() == Instant(Millis(2)));
}

TEST_CASE("framed socket: a peer that does not read is closed when the queue is full",
          "[framed_socket]") {
  asio::io_context io;
  testing::SocketPair pair(io);
  FramedSocketLimits limits;
  limits.send_queue_bytes_max = 1'000'000;
  FramedSocket socket(std::move(pair.a), limits);
  const auto payload = std::make_shared<const Bytes>(payload_of(300'000));
  int sent = 0;
  while (socket.send(payload)) {
    REQUIRE(++sent < 1000);
    io.poll();
    io.restart();
    REQUIRE(socket.bytes_waiting() <= limits.send_queue_bytes_max + 3'000'000);
    if (sent == 2) socket.let_wait(3'000'000);
  }
  REQUIRE(sent >= 12);
  REQUIRE_FALSE(socket.is_open());
  REQUIRE(socket.close_reason().find("the peer is too slow") == 0);
}

TEST_CASE("framed socket: one frame larger than the queue may be sent", "[framed_socket]") {
  asio::io_context io;
  testing::SocketPair pair(io);
  FramedSocketLimits limits;
  limits.send_queue_bytes_max = 10;
  FramedSocket a(std::move(pair.a), limits);
  FramedSocket b(std::move(pair.b), {});
  REQUIRE(a.send(payload_of(1000)));
  a.finish("done");
  Seen seen;
  testing::run_to_end(io, read_all(b, kReadPatience, kFrameBytesMax, seen));
  REQUIRE(seen.payloads.size() == 1);
}

TEST_CASE("framed socket: a write that the peer never takes ends at its deadline",
          "[framed_socket]") {
  asio::io_context io;
  testing::SocketPair pair(io);
  FramedSocketLimits limits;
  limits.frame_time_max = kMoment;
  limits.bytes_per_second_min = std::size_t{1} << 40;
  FramedSocket socket(std::move(pair.a), limits);
  const auto payload = std::make_shared<const Bytes>(payload_of(30'000'000));
  REQUIRE(socket.send(payload));
  io.run();
  REQUIRE_FALSE(socket.is_open());
  REQUIRE(socket.close_reason() == "the peer did not take what was sent for 5 ms");
}

TEST_CASE("framed socket: what finish leaves queued arrives though the peer still sends",
          "[framed_socket]") {
  asio::io_context io;
  testing::SocketPair pair(io);
  asio::ip::tcp::socket far = std::move(pair.b);
  asio::write(far, asio::buffer(framed(payload_of(5000))));
  {
    FramedSocket socket(std::move(pair.a), {});
    REQUIRE(socket.send(payload_of(100)));
    socket.finish("refused");
  }  // the object may go before its bytes have
  Bytes received(100 + kFrameHeaderBytes);
  const auto target = asio::buffer(received);
  bool has_all = false;
  asio::async_read(far, target, [&](const asio::error_code& error, std::size_t) {
    has_all = !error;
    far.close();
  });
  io.run();
  REQUIRE(has_all);
  REQUIRE(received == framed(payload_of(100)));
}

TEST_CASE("framed socket: what a peer said before it broke the connection is read to the end",
          "[framed_socket]") {
  asio::io_context io;
  testing::SocketPair pair(io);
  FramedSocket near(std::move(pair.a), {});
  REQUIRE(near.send(payload_of(100)));
  io.poll();
  const std::vector<Bytes> last_words{payload_of(3), payload_of(70'000)};
  for (const Bytes& words : last_words) asio::write(pair.b, asio::buffer(framed(words)));
  pair.b.close();  // with bytes unread: the kernel resets the connection

  // The first write after it fails, before anything is read.
  Seen seen;
  REQUIRE(near.send(payload_of(100)));
  io.restart();
  io.poll();
  REQUIRE_FALSE(near.send(payload_of(100)));
  REQUIRE(near.bytes_waiting() == 0);
  REQUIRE(near.close_reason() != "");
  io.restart();
  testing::run_to_end(io, read_all(near, kReadPatience, kFrameBytesMax, seen));
  REQUIRE(seen.payloads == last_words);
  REQUIRE(seen.error == near.close_reason());
  REQUIRE_FALSE(near.is_open());
}

TEST_CASE("framed socket: nobody keeps a finished or a broken connection for ever",
          "[framed_socket]") {
  asio::io_context io;
  testing::SocketPair pair(io);
  FramedSocketLimits limits;
  limits.linger_max = kMoment;
  FramedSocket near(std::move(pair.a), limits);
  SECTION("finished, and the peer holds on to it") {
    near.finish("done");
    io.run_for(kReadPatience);
    REQUIRE(near.close_reason() == "done");
  }
  SECTION("broken, and its owner does not read") {
    REQUIRE(near.send(payload_of(100)));
    io.poll();
    pair.b.close();  // with bytes unread: the kernel resets the connection
    io.restart();
    REQUIRE(near.send(payload_of(100)));
    io.run_for(kReadPatience);
  }
  REQUIRE_FALSE(near.is_open());
}

TEST_CASE("framed socket: closing ends a read under way with the reason", "[framed_socket]") {
  Reader reader;
  reader.io.poll();
  reader.framed_socket.close("enough");
  reader.framed_socket.close("another reason");
  reader.io.run();
  REQUIRE(reader.seen.error == "enough");
  REQUIRE_FALSE(reader.framed_socket.send(payload_of(1)));
}

TEST_CASE("framed socket: a reading task that is stopped closes the connection",
          "[framed_socket]") {
  asio::io_context io;
  testing::SocketPair pair(io);
  FramedSocket socket(std::move(pair.a), {});
  std::vector<std::string> failures;
  TaskGroup tasks(io.get_executor(),
                  [&](const std::string&, const std::string& what) { failures.push_back(what); });
  Seen seen;
  tasks.spawn("reader", read_all(socket, kReadPatience, kFrameBytesMax, seen));
  io.poll();
  testing::run_to_end(io, tasks.stop());
  REQUIRE(seen.error == "stopped");
  REQUIRE_FALSE(socket.is_open());
  REQUIRE(failures.empty());
}

}  // namespace gleaner

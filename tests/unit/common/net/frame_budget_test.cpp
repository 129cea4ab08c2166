#include <catch2/catch.hpp>

#include "common/net/frame.hpp"
#include "tests/unit/common/net/socket_reader.hpp"

namespace gleaner {
namespace {

template <class Condition>
void run_until(asio::io_context& io, Condition is_met) {
  while (!is_met()) REQUIRE(io.run_one_for(std::chrono::minutes(2)) > 0);
}

}  // namespace

TEST_CASE("frame budget: of frames that do not come whole the largest ends its connection",
          "[frame_budget]") {
  FramedSocketLimits limits;
  limits.budget = std::make_shared<FrameBudget>(1'000'000);
  Reader greedy(kReadPatience, kFrameBytesMax, limits);
  Reader honest(kReadPatience, kFrameBytesMax, limits);
  const Bytes large = framed(payload_of(900'000));
  asio::write(greedy.far, asio::buffer(large.data(), 700'000));
  run_until(greedy.io, [&] { return limits.budget->bytes() == 900'000; });
  REQUIRE(greedy.framed_socket.is_open());

  const Bytes payload = payload_of(600'000);
  const Bytes frame = framed(payload);
  asio::write(honest.far, asio::buffer(frame.data(), 300'000));
  run_until(honest.io, [&] { return limits.budget->bytes() == 512 * 1024; });
  REQUIRE_FALSE(greedy.framed_socket.is_open());
  REQUIRE_THAT(greedy.framed_socket.close_reason(), Catch::Contains("the largest"));
  asio::write(honest.far, asio::buffer(frame.data() + 300'000, frame.size() - 300'000));
  run_until(honest.io,
            [&] { return !honest.seen.payloads.empty() && limits.budget->bytes() == 0; });
  REQUIRE(honest.seen.payloads == std::vector<Bytes>{payload});
  // One frame alone that is beyond the budget.
  limits.budget = std::make_shared<FrameBudget>(100'000);
  Reader lonely(kReadPatience, kFrameBytesMax, limits);
  asio::write(lonely.far, asio::buffer(frame.data(), 70'000));
  run_until(lonely.io, [&] { return !lonely.seen.error.empty(); });
  REQUIRE_THAT(lonely.seen.error, Catch::Contains("the largest"));
}

TEST_CASE("frame budget: of peers that do not read the one that most waits for is closed",
          "[frame_budget]") {
  asio::io_context io;
  testing::SocketPair one(io);
  testing::SocketPair other(io);
  FramedSocketLimits limits;
  limits.send_budget = std::make_shared<FrameBudget>(10'000'000);
  FramedSocket greedy(std::move(one.a), limits);
  FramedSocket slow(std::move(other.a), limits);
  for (int i = 0; i < 8; ++i) REQUIRE(greedy.send(payload_of(1'000'000)));
  REQUIRE(slow.send(payload_of(1'000'000)));
  REQUIRE(greedy.is_open());
  REQUIRE(slow.send(payload_of(1'500'000)));
  REQUIRE_FALSE(greedy.is_open());
  REQUIRE_THAT(greedy.close_reason(), Catch::Contains("take the most"));
  REQUIRE(slow.is_open());
  // Room is made by what is sent.
  FramedSocket reader(std::move(other.b), {});
  slow.finish("done");
  Seen seen;
  testing::run_to_end(io, read_all(reader, kReadPatience, kFrameBytesMax, seen));
  REQUIRE(seen.payloads.size() == 2);
  REQUIRE(limits.send_budget->bytes() == 0);
  // The connection that takes the most may be the one to which more is sent.
  limits.send_budget = std::make_shared<FrameBudget>(2'000'000);
  testing::SocketPair third(io);
  FramedSocket lonely(std::move(third.a), limits);
  REQUIRE(lonely.send(payload_of(1'500'000)));
  REQUIRE_FALSE(lonely.send(payload_of(1'500'000)));
  REQUIRE_FALSE(lonely.is_open());
}

}  // namespace gleaner

#include <catch2/catch.hpp>

#include "schema/messages.hpp"

namespace gleaner {

TEST_CASE("traffic: bytes are counted by what the message is for", "[traffic]") {
  Traffic traffic;
  std::uint64_t bytes = 1;
  // Each its own bit, so that the sums tell who is in them.
  const auto add = [&](const Message& message) {
    traffic.add(message.index(), bytes);
    bytes *= 2;
  };
  add(TrainUnit{});
  add(UnitResult{});
  add(InputUnit{});
  add(InputResult{});
  REQUIRE(traffic.units == 0xf);
  add(EvalUnit{});
  add(EvalResult{});
  REQUIRE(traffic.evaluation == 0x30);
  add(ShardCommit{});
  add(CommitCredit{});
  REQUIRE(traffic.commits == 0xc0);
  add(PointsRequest{});
  add(Points{});
  REQUIRE(traffic.points == 0x300);
  add(LeaseGrant{});
  add(ShardChunk{});
  add(HandOver{});
  add(ShardOffer{});
  REQUIRE(traffic.shards == 0x3c00);
  add(Hello{});
  add(Heartbeat{});
  REQUIRE(traffic.rest() == 0xc000);
  REQUIRE(traffic.all == 0xffff);

  Traffic twice = traffic;
  twice += traffic;
  REQUIRE(twice == Traffic{0x1fffe, 0x1e, 0x60, 0x180, 0x7800, 0x600});
}

}  // namespace gleaner

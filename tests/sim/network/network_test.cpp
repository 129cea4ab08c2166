#include "tests/sim/network/network.hpp"

#include <catch2/catch.hpp>
#include <string>

namespace gleaner::sim {
namespace {

struct Wire {
  explicit Wire(std::uint64_t bytes_per_second = 0, std::uint64_t master_bytes_per_second = 0,
                std::size_t queue_bytes_max = 1 << 20)
      : network(clock, random, log, queue_bytes_max, master_bytes_per_second) {
    link.latency_min = link.latency_max = Micros(1'000);
    link.bytes_per_second = bytes_per_second;
  }

  ConnectionId open(std::size_t volunteer = 0) {
    return network.open(volunteer, link,
                        {[this](Packet p) { heard += "m" + std::to_string(p.wire_bytes) + " "; },
                         [this] { heard += "m-closed "; }},
                        {[this](Packet p) {
                           heard += "v" + std::to_string(p.wire_bytes) + " ";
                           arrived = clock.now();
                         },
                         [this] { heard += "v-closed "; }});
  }

  void send(ConnectionId id, End from, std::size_t bytes, Lane lane = Lane::kOrdered) {
    Packet packet;
    packet.lane = lane;
    packet.wire_bytes = bytes;
    network.send(id, from, std::move(packet));
  }

  void settle() {
    while (clock.step()) {
    }
  }

  SimClock clock;
  Rng random{1, Purpose::kTest};
  SimLog log{clock, {}};
  LinkShape link;
  Network network;
  std::string heard;
  Instant arrived{};
};

}  // namespace

TEST_CASE("network: packets arrive whole and in order, and a close after them", "[sim]") {
  Wire wire;
  const ConnectionId id = wire.open();
  wire.send(id, End::kMaster, 1);
  wire.send(id, End::kMaster, 2);
  wire.network.close(id, End::kMaster);
  wire.send(id, End::kMaster, 3);  // too late
  wire.settle();
  REQUIRE(wire.heard == "v1 v2 v-closed m-closed ");
  REQUIRE(wire.network.open_connections().empty());
}

TEST_CASE("network: a cut loses what is under way and tells whom it is asked to tell", "[sim]") {
  Wire wire(1'000'000);
  const ConnectionId id = wire.open();
  wire.send(id, End::kMaster, 1'000);
  wire.send(id, End::kVolunteer, 5'000);
  wire.network.cut(id, false, true);
  wire.settle();
  REQUIRE(wire.heard == "v-closed ");
  REQUIRE(wire.log.marks().at("network.cut_inside_packet") > 0);
  // The end that was not told goes on sending into the void, up to what a queue may hold.
  wire.send(id, End::kMaster, 1 << 19);
  wire.send(id, End::kMaster, 1 << 19);
  REQUIRE(wire.heard == "v-closed ");
  wire.send(id, End::kMaster, 1 << 19);
  wire.settle();
  REQUIRE(wire.heard == "v-closed m-closed ");
}

TEST_CASE("network: a stalled direction holds back and the other one flows", "[sim]") {
  Wire wire;
  const ConnectionId id = wire.open();
  wire.network.stall(0, End::kVolunteer, Instant(Millis(500)));
  wire.send(id, End::kMaster, 1);
  wire.send(id, End::kVolunteer, 2);
  wire.send(id, End::kMaster, 3);
  wire.settle();
  REQUIRE(wire.heard == "m2 v1 v3 ");
  REQUIRE(wire.arrived == Instant(Millis(500)));
}

TEST_CASE("network: bandwidth takes time, and the master's is shared in turns", "[sim]") {
  Wire alone(1'000'000);
  alone.send(alone.open(), End::kMaster, 100'000);
  alone.settle();
  REQUIRE(alone.arrived == Instant(Micros(101'000)));

  // A small packet does not wait for a large one of somebody else.
  Wire shared(0, 1'000'000);
  const ConnectionId large = shared.open(0);
  const ConnectionId small = shared.open(1);
  shared.send(large, End::kMaster, 1'000'000);
  shared.send(small, End::kMaster, 10);
  shared.settle();
  REQUIRE(shared.heard == "v10 v1000000 ");
}

TEST_CASE("network: urgent packets overtake ordered ones, never the other way round", "[sim]") {
  for (const std::uint64_t master_rate : {0u, 1'000'000u}) {
    for (const End from : {End::kMaster, End::kVolunteer}) {
      Wire wire(1'000'000, master_rate);
      const ConnectionId id = wire.open();
      wire.send(id, from, 10'000);
      wire.send(id, from, 20'000);
      wire.send(id, from, 1, Lane::kUrgent);
      wire.send(id, from, 2, Lane::kUrgent);
      wire.send(id, from, 3);
      wire.settle();
      const std::string urgent_after = wire.heard.substr(0, wire.heard.find("20000"));
      CHECK(urgent_after.find("1 ") < urgent_after.find("2 "));
      CHECK(wire.heard.find("10000") < wire.heard.find("20000"));
      CHECK(wire.heard.find("20000") < wire.heard.rfind("3 "));
    }
  }
}

TEST_CASE("network: a dead process is told of or not", "[sim]") {
  Wire wire;
  const ConnectionId told = wire.open();
  wire.send(told, End::kVolunteer, 7);
  wire.network.abandon(told, End::kVolunteer, true);
  wire.settle();
  REQUIRE(wire.heard == "m7 m-closed ");
  const ConnectionId silent = wire.open();
  wire.send(silent, End::kVolunteer, 8);
  wire.network.abandon(silent, End::kVolunteer, false);
  wire.settle();
  REQUIRE(wire.heard == "m7 m-closed ");
}

}  // namespace gleaner::sim

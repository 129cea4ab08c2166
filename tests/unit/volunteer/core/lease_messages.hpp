// A volunteer's lease, and what a master sends about it.
#pragma once

#include <catch2/catch.hpp>

#include "tests/support/volunteer_driver.hpp"

namespace gleaner::volunteer {

inline constexpr ShardId kShard{2};
inline constexpr LeaseRef kLease{kShard, LeaseEpoch{5}};

inline LeaseGrant grant(std::uint32_t base_chunks, std::uint32_t chunks, LeaseRef lease = kLease,
                        RoundIndex base_round = 1) {
  LeaseGrant message;
  message.lease = lease;
  message.base_round = base_round;
  message.base_chunks = base_chunks;
  message.chunks = chunks;
  return message;
}

inline ShardChunk chunk(std::uint32_t number, LeaseRef lease = kLease) {
  ShardChunk message{lease, number, {}};
  message.rows.rows = {number};
  return message;
}

inline TrainUnit unit(std::uint64_t number) {
  TrainUnit message;
  message.unit = UnitId{number};
  return message;
}

// The work under way, which must be this kind of message.
template <typename T>
T under_way(VolunteerDriver& driver) {
  REQUIRE_FALSE(driver.work.empty());
  const auto& message = std::get<Message>(driver.work.front().work);
  INFO("under way: " << message_name(message));
  REQUIRE(std::holds_alternative<T>(message));
  return std::get<T>(message);
}

inline std::vector<std::uint32_t> requests(VolunteerDriver& driver) {
  std::vector<std::uint32_t> chunks;
  while (!driver.sent.empty()) chunks.push_back(driver.take<ChunkRequest>().chunk);
  return chunks;
}

// Loses the connection and is welcomed again, to the model `welcome` says.
inline void reconnect(VolunteerDriver& driver,
                      const Welcome& welcome = VolunteerDriver::welcome()) {
  driver.handle(Disconnected{"reset"});
  driver.tick(Millis(1'000));
  driver.sent.clear();
  driver.handle(Connected{});
  driver.take<Hello>();
  driver.receive(welcome);
  while (!std::holds_alternative<Reset>(driver.work.front().work)) driver.finish_work();
  driver.finish_work();
}

}  // namespace gleaner::volunteer

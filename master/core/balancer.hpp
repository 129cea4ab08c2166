// Which volunteer should hold how many shards. Pure functions. Placement never changes a number of
// the model, so measured speeds may decide here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/ids.hpp"

namespace gleaner {

struct Holder {
  SessionId session{};
  double speed = 0;          // examples x shards a second, or any common unit; 0 counts as slowest
  std::uint32_t shards = 0;  // held or on the way
  std::uint32_t capacity = 0;  // most shards its memory takes
};

// Fair shares: proportional to speed, within capacity, largest remainder first, ties by position.
// The shares sum to `shards` unless the capacities do not suffice.
std::vector<std::uint32_t> fair_shares(std::span<const Holder> holders, std::uint32_t shards);

// Position of the holder that should get the next free shard: the one furthest below its share.
// Nullopt when none has room.
std::optional<std::size_t> next_receiver(std::span<const Holder> holders, std::uint32_t shards);

struct Move {
  SessionId source{};
  std::uint32_t shards = 0;
};

// How many shards to ask back from whom, so that they may go to volunteers below their share. A
// volunteer without any shard is always served; otherwise a holder must be short by more than
// `hysteresis` of its share (and by a whole shard), since a move costs a download.
std::vector<Move> plan_moves(std::span<const Holder> holders, std::uint32_t shards,
                             double hysteresis);

}  // namespace gleaner

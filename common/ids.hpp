// Identities of the whole system. Strong types prevent passing a shard where a session is expected.
// Batches and rounds are positions in the run and take part in arithmetic, so they are plain
// integers.
#pragma once

#include <cstdint>
#include <type_traits>

namespace gleaner {

// A shard of a layer: output shards are 0 .. output_shards - 1, input shards follow them.
enum class ShardId : std::uint32_t {};
// One connection of a volunteer; not reused in a master's life.
enum class SessionId : std::uint64_t {};
enum class UnitId : std::uint64_t {};
// Fencing token of a lease: grows with every grant of any shard during the whole run.
enum class LeaseEpoch : std::uint64_t {};

// Position of a batch in the run, counted from 0 over all epochs.
using BatchIndex = std::uint64_t;
// Position of a round in the run, counted from 0. Checkpoint r holds the model after round r - 1,
// so checkpoint 0 is the initial model.
using RoundIndex = std::uint32_t;

template <typename Id>
requires std::is_enum_v<Id>

constexpr auto raw(Id id) {
  return static_cast<std::underlying_type_t<Id>>(id);
}

}  // namespace gleaner

// The parts of a RunStatus in words, for programs and people. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "schema/messages.hpp"

namespace gleaner {

const char* stage_name(RunStage stage);
const char* owner_name(WaitOwner owner);
const char* state_name(LeaseState state);

// Whether the shard at this place belongs to the input layer.
inline bool is_input(const RunStatus& status, std::size_t shard) {
  return shard + status.input_shards >= status.shards.size();
}

// The shards that a volunteer holds, ascending; with `ready_only` only those that it trains.
// `volunteer` is its index in the status.
std::vector<std::uint32_t> shards_of(const RunStatus& status, std::size_t volunteer,
                                     bool ready_only);

// "3.2 s"; words for a minute and more.
std::string age(std::uint64_t us);

// Whether it computes nothing because its owner or its pause policy stopped it.
bool is_paused(const VolunteerEntry& volunteer);
// "works", "ready", "idle", "no shards", "paused", "leaving", or "3 shards moving".
std::string volunteer_state(const RunStatus& status, std::size_t volunteer);
// The state from counts: `held` shards, of which `ready` are trained.
std::string volunteer_state(const VolunteerEntry& volunteer, std::size_t held, std::size_t ready);

}  // namespace gleaner

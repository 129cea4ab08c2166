// The words for the parts of a RunStatus, as programs and people read them. Pure functions.
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

// Numbers of the shards that a volunteer holds, ascending; with `ready_only` only those that it
// trains. `volunteer` is its place in the status.
std::vector<std::uint32_t> shards_of(const RunStatus& status, std::size_t volunteer,
                                     bool ready_only);

// "3.2 s", and from a minute on in words.
std::string age(std::uint64_t us);

// Whether it computes nothing since its owner, or the machine, does not want it to.
bool is_paused(const VolunteerEntry& volunteer);
// "works", "ready", "idle", "no shards", "paused", "leaving", or "3 shards moving".
std::string volunteer_state(const RunStatus& status, std::size_t volunteer);
// Describes it when its shards have been counted: `held` of them, and `ready` of these are trained.
std::string volunteer_state(const VolunteerEntry& volunteer, std::size_t held, std::size_t ready);

}  // namespace gleaner

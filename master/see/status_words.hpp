// The parts of a RunStatus in words, for programs and people. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/console/terminal.hpp"
#include "common/result.hpp"
#include "schema/messages.hpp"
#include "schema/tool_messages.hpp"

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

// The progress of a run as one line. Pure functions.

// Figures as people read them: rounded, and with words for long times.
std::string rate_shown(double value);
std::string seconds_shown(double seconds);

// A line of at most `width` columns with a bar. The least important parts are shortened, then left
// out, until the rest fits.
std::string progress_line(const RunProgress& run, unsigned width, TextStyle style);

// All figures, as a log line.
std::string progress_log_line(const RunProgress& run);

// Explains to people why a run, a shard or a volunteer is as it is. Names of peers are made
// printable.

// Explains the state of the run in one or two short sentences: its activity, or why it stands still
// and until when.
std::string headline(const RunStatus& status);

// Explains the state of `about`: "run", a shard's number, or a volunteer's name. kInvalidArgument
// lists what there is.
Result<std::vector<std::string>> why(const RunStatus& status, const std::string& about);

}  // namespace gleaner

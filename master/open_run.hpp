// Opens the store and runs the master on it; when the disk fills up, waits for room, opens the
// store again from what is on the disk and goes on, all in one process.
#pragma once

#include <cstdint>
#include <optional>

#include "common/ids.hpp"
#include "common/result.hpp"
#include "master/config/config.hpp"
#include "master/run_data.hpp"
#include "master/see/console.hpp"

namespace gleaner {

// The bytes that must be free before a store that ran out of room is opened again: its reserve, and
// twice as much each time that did not suffice for another checkpoint. Pure.
class RoomWanted {
 public:
  explicit RoomWanted(std::uint64_t reserve) : reserve_(reserve), bytes_(reserve) {}

  // After `error`, with the store at `checkpoint` when it was last seen.
  std::uint64_t after(const Error& error, RoundIndex checkpoint);

 private:
  const std::uint64_t reserve_;
  std::uint64_t bytes_;
  std::optional<RoundIndex> unsure_at_;  // checkpoint at which room ran out within a write
};

// Returns when the run is finished, stopped or has failed; the console has been told which.
ExitCode open_and_run(MasterConfig config, const RunData& data, Console& console);

}  // namespace gleaner

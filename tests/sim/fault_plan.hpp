// The faults of a simulated run, and their rates. A seed draws kinds and strengths of faults, and
// also timeouts, queues, chunks, units, lag, shards, links and the number of volunteers, so that
// rare paths become common.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/time.hpp"

namespace gleaner::sim {

struct ClusterOptions;

enum class Fault : std::uint8_t {
  kReset,             // a connection breaks, both ends are told
  kHalfOpen,          // a connection breaks, one end or none is told
  kStall,             // one direction of a volunteer's link stands still
  kPartition,         // several volunteers are cut off, both ways, new connections too
  kVolunteerKill,     // SIGKILL: its kernel closes the connections
  kVolunteerPower,    // it vanishes without a word
  kVolunteerFreeze,   // it stands still for longer than the master's patience, and thaws
  kVolunteerStop,     // it is asked to leave
  kVolunteerSlow,     // its work takes 50 times as long for a while
  kVolunteerMemory,   // it starts again without memory for the offered shards
  kTwin,              // a second process starts with the same identity
  kStrangersSilent,   // silent connections
  kStrangersGarbage,  // connections that send nonsense
  kMasterKill,        // SIGKILL: written data stay
  kMasterPower,       // power loss: unsynced data are lost, up to a random batch
  kMasterStop,        // it is asked to stop
  kMasterInRecovery,  // it dies at the first writes after a start
  kMasterInFold,      // it dies before, in or after the writes of a fold
  kDiskSlow,          // the store's tasks take 30 times as long for a while
  kDiskRead,          // a read fails
  kDiskWrite,         // a write fails, and may or may not have happened
  kDiskFull,          // the disk has no room for a while
  kVolunteerGone,     // it vanishes for good, if another volunteer stays
  kBan,               // the owner bans a volunteer, if another stays
};

inline constexpr std::size_t kFaultKinds = static_cast<std::size_t>(Fault::kBan) + 1;

const char* name_of(Fault fault);

struct FaultPlan {
  Millis until{0};                          // no fault begins after this
  std::array<Millis, kFaultKinds> every{};  // mean time between two faults; 0: none
  Millis lasting_most{3'000};               // freezes, stalls and the like

  [[nodiscard]] Millis& operator[](Fault fault) { return every[static_cast<std::size_t>(fault)]; }

  [[nodiscard]] Millis operator[](Fault fault) const {
    return every[static_cast<std::size_t>(fault)];
  }
};

// Draws all options but the model's data from `seed`, and changes the model given in
// `options.model`.
void draw(ClusterOptions& options, std::uint64_t seed);

// The drawn faults, a line each.
std::vector<std::string> describe(const ClusterOptions& options);

}  // namespace gleaner::sim

// The faults of a simulated run, and how often they come. Which faults exist and how strong they
// are is drawn from a seed, with everything else that may be shrunk or stretched until rare paths
// are common: timeouts, queues, chunks, units, lag, shards, links, the number of volunteers.
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
  kVolunteerKill,     // SIGKILL: its kernel says so
  kVolunteerPower,    // it vanishes without a word
  kVolunteerFreeze,   // it stands still for longer than is allowed, and thaws
  kVolunteerStop,     // it is asked to leave
  kVolunteerSlow,     // its work takes 50 times as long for a while
  kVolunteerMemory,   // it starts again where there is no memory for what it offers
  kTwin,              // it is started a second time, with the same identity
  kStrangersSilent,   // connections that say nothing
  kStrangersGarbage,  // connections that say nonsense
  kMasterKill,        // SIGKILL: what was written stays
  kMasterPower,       // power loss: what was not synced is lost, up to a batch of chance
  kMasterStop,        // it is asked to stop
  kMasterInRecovery,  // it dies in the first writes after a start
  kMasterInFold,      // it dies while a fold is being written, before or after
  kDiskSlow,          // every piece of the store's work takes 30 times as long for a while
  kDiskRead,          // a read fails
  kDiskWrite,         // a write fails, and may or may not have happened
  kDiskFull,          // the disk has no room for a while
  kVolunteerGone,     // it vanishes without a word and for good, if another one stays
  kBan,               // the owner bans a volunteer, if another one stays
};

inline constexpr std::size_t kFaultKinds = static_cast<std::size_t>(Fault::kBan) + 1;

const char* name_of(Fault fault);

struct FaultPlan {
  Millis until{0};                          // none begins after this
  std::array<Millis, kFaultKinds> every{};  // mean time between two; 0: does not exist
  Millis lasting_most{3'000};               // freezes, stalls and the like

  [[nodiscard]] Millis& operator[](Fault fault) { return every[static_cast<std::size_t>(fault)]; }

  [[nodiscard]] Millis operator[](Fault fault) const {
    return every[static_cast<std::size_t>(fault)];
  }
};

// Draws everything but the model's data from `seed`; `options.model` holds a base and is drawn on.
void draw(ClusterOptions& options, std::uint64_t seed);

// The faults that were drawn, a line each.
std::vector<std::string> describe(const ClusterOptions& options);

}  // namespace gleaner::sim

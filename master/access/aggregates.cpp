#include "master/access/aggregates.hpp"

#include <fmt/format.h>

namespace gleaner {

void keep_aggregates(RunStatus& status) {
  for (std::size_t i = 0; i < status.volunteers.size(); ++i) {
    VolunteerEntry& volunteer = status.volunteers[i];
    VolunteerEntry kept;
    kept.name = fmt::format("volunteer {}", i + 1);
    kept.is_local = volunteer.is_local;
    kept.is_leaving = volunteer.is_leaving;
    kept.cores = volunteer.cores;
    kept.speed = volunteer.speed;
    volunteer = kept;
  }
  for (ShardEntry& shard : status.shards) {
    shard.held_before.clear();
    shard.moved_why.clear();
  }
  status.gone.clear();
  // Others' sentences name nobody.
  if (status.wait_owner == WaitOwner::kVolunteers) status.waits_for = "the work of volunteers";
}

}  // namespace gleaner

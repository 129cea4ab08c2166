#include "master/console/status_words.hpp"

#include "common/counted.hpp"

namespace gleaner {

const char* stage_name(RunStage stage) {
  switch (stage) {
    case RunStage::kWaiting:
      return "waiting";
    case RunStage::kTraining:
      return "training";
    case RunStage::kEvaluating:
      return "evaluating";
    case RunStage::kStopping:
      return "stopping";
    case RunStage::kDone:
      return "done";
  }
  return "unknown";
}

const char* owner_name(WaitOwner owner) {
  switch (owner) {
    case WaitOwner::kNobody:
      return "nobody";
    case WaitOwner::kOperator:
      return "operator";
    case WaitOwner::kVolunteers:
      return "volunteers";
    case WaitOwner::kMaster:
      return "master";
    case WaitOwner::kStore:
      return "store";
  }
  return "unknown";
}

const char* state_name(LeaseState state) {
  switch (state) {
    case LeaseState::kFree:
      return "free";
    case LeaseState::kLoading:
      return "loading";
    case LeaseState::kReady:
      return "ready";
    case LeaseState::kReleasing:
      return "releasing";
  }
  return "unknown";
}

std::vector<std::uint32_t> shards_of(const RunStatus& status, std::size_t volunteer,
                                     bool ready_only) {
  std::vector<std::uint32_t> shards;
  for (std::uint32_t s = 0; s < status.shards.size(); ++s) {
    const ShardEntry& shard = status.shards[s];
    if (shard.holder != volunteer) continue;
    if (!ready_only || shard.state == LeaseState::kReady) shards.push_back(s);
  }
  return shards;
}

bool is_paused(const VolunteerEntry& volunteer) {
  // SessionState::pause_words() begins so, and no other reason does.
  return volunteer.no_shards.starts_with("paused");
}

std::string volunteer_state(const VolunteerEntry& volunteer, std::size_t held, std::size_t ready) {
  if (is_paused(volunteer)) return "paused";
  if (volunteer.is_leaving) return "leaving";
  if (held == 0) return volunteer.no_shards.empty() ? "idle" : "no shards";
  if (held > ready) return counted(held - ready, "shard") + " moving";
  return volunteer.owes ? "works" : "ready";
}

std::string volunteer_state(const RunStatus& status, std::size_t volunteer) {
  return volunteer_state(status.volunteers[volunteer], shards_of(status, volunteer, false).size(),
                         shards_of(status, volunteer, true).size());
}

}  // namespace gleaner

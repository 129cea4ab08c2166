#include "master/see/status_words.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/text.hpp"
#include "common/time.hpp"

namespace gleaner {
namespace {

template <std::size_t N, typename Enum>
const char* name_in(const char* const (&names)[N], Enum value) {
  const auto place = static_cast<std::size_t>(value);
  return place < N ? names[place] : "unknown";
}

}  // namespace

const char* stage_name(RunStage stage) {
  return name_in({"waiting", "training", "evaluating", "stopping", "done"}, stage);
}

const char* owner_name(WaitOwner owner) {
  return name_in({"nobody", "operator", "volunteers", "master", "store"}, owner);
}

const char* state_name(LeaseState state) {
  return name_in({"free", "loading", "ready", "releasing"}, state);
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

std::string age(std::uint64_t us) {
  const double seconds = static_cast<double>(us) / 1e6;
  return seconds < 60 ? fmt::format("{:.1f} s", seconds)
                      : duration_words(static_cast<std::uint64_t>(seconds));
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

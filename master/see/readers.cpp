#include "master/see/readers.hpp"

#include <fmt/format.h>

#include "common/access/addresses.hpp"
#include "common/time.hpp"

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
  status.progress.waiting_for.clear();
  // Waits of other owners name nobody.
  if (status.wait_owner == WaitOwner::kVolunteers) status.waits_for = "the work of volunteers";
}

Reader Readers::who(bool is_local, std::string_view key) const {
  if (is_local) return is_page_key(key, key_) ? Reader::kAdmin : Reader::kHere;
  if (!access_) return Reader::kNobody;
  const auto role = reader_role(*access_, key, wall_seconds());
  if (!role) return Reader::kNobody;
  return *role == Role::kAdmin ? Reader::kAdmin : Reader::kObserver;
}

HttpReply Readers::refusal(std::string_view key) const {
  if (!access_) return text_reply(503, kHttpText, "The run has not begun; ask again later.\n");
  if (key.empty()) {
    return text_reply(401, kHttpText,
                      "From elsewhere this page takes an invite at the end of its address: "
                      "http://HOST:PORT/#INVITE. The master's owner makes one: gleaner invite "
                      "create STORE --role observer --reusable\n");
  }
  const auto role = reader_role(*access_, key, wall_seconds());
  return text_reply(401, kHttpText, (role ? "Ask again." : role.error().message) + "\n");
}

PageView for_observers(PageView view) {
  keep_aggregates(view.status);
  // A sentence about a full disk names the store's folder.
  if (view.status.waits_for.starts_with(kDiskSpace)) view.status.waits_for = kDiskSpace;
  view.accounts.clear();
  view.banned.clear();
  return view;
}

RunFacts for_observers(RunFacts facts) {
  facts.store.clear();
  if (!facts.join.empty()) facts.join = "gleaner-volunteer gleaner://HOST:PORT/KEY.INVITE";
  std::erase_if(facts.settings,
                [](const SettingShown& setting) { return !setting.key.starts_with("model."); });
  return facts;
}

// All other events may name volunteers, folders and addresses.
bool is_for_observers(const RunEvent& event) {
  return is_one_of<CheckpointSaved, Evaluated, RatesCut, Resumed>(event);
}

}  // namespace gleaner

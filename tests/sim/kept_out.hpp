// Bans and suspended invites, which outlive the master's process, as its access book does.
#pragma once

#include <map>
#include <set>

#include "master/core/reports.hpp"
#include "master/door/access_book.hpp"

namespace gleaner::sim {

struct KeptOut {
  std::set<KeyId> banned;
  std::map<InviteId, Invite> invites;  // invites of convicted keys

  // Whether the invite admits no new strangers.
  [[nodiscard]] bool has_suspended(InviteId invite) const {
    const auto known = invites.find(invite);
    return known != invites.end() && is_suspended(known->second);
  }

  void convict(const Volunteer& who) {
    banned.insert(who.identity);
    Invite& invite = invites[who.invite];
    ++invite.convictions;
  }
};

}  // namespace gleaner::sim

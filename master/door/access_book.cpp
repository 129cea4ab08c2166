#include "master/door/access_book.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/access/addresses.hpp"
#include "common/ids.hpp"
#include "common/limits.hpp"

namespace gleaner {
namespace {

// An invite is suspended at this number of convictions.
constexpr std::uint32_t kConvictionsMax = 3;

Error refused(std::string sentence) {
  return {ErrorCode::kInvite, std::move(sentence)};
}

bool is_expired(const Invite& invite, std::int64_t now) {
  return invite.expires != 0 && invite.expires <= now;
}

}  // namespace

InviteKey invite_key(const KeyPair& master, InviteId id) {
  return {id, master.derive("invite " + to_text(id))};
}

bool is_suspended(const Invite& invite) {
  return !invite.is_trusted && invite.convictions >= kConvictionsMax;
}

bool is_banned(const AccessBook& book, const KeyId& key) {
  const auto rule = book.peers.find(key);
  return rule != book.peers.end() && rule->second.is_banned;
}

const char* state_of(const Invite& invite, std::int64_t now) {
  if (invite.is_revoked) return "revoked";
  if (is_expired(invite, now)) return "expired";
  if (is_suspended(invite)) return "suspended";
  return invite.used_by ? "used" : "open";
}

Result<InviteId> add_invite(AccessBook& book, Invite invite) {
  if (book.invites.size() >= kInvitesMax) {
    const auto is_over = [&](const auto& entry) {
      return entry.second.is_revoked || is_expired(entry.second, invite.created);
    };
    auto oldest = book.invites.end();
    for (auto entry = book.invites.begin(); entry != book.invites.end(); ++entry) {
      if (is_over(*entry) &&
          (oldest == book.invites.end() || entry->second.created < oldest->second.created)) {
        oldest = entry;
      }
    }
    if (oldest == book.invites.end()) {
      return Error{
          ErrorCode::kResources,
          fmt::format("there are {} invites, and no more are kept: revoke some", kInvitesMax)};
    }
    book.invites.erase(oldest);
  }
  for (;;) {
    const InviteId id{random_bits() & kInviteIdMax};
    if (raw(id) != 0 && book.invites.emplace(id, invite).second) return id;
  }
}

bool is_trusted(const AccessBook& book, const KeyId& key, const Invite& invite) {
  const auto rule = book.peers.find(key);
  return invite.is_trusted || (rule != book.peers.end() && rule->second.is_approved);
}

Result<InviteId> valid_invite(const AccessBook& book, const KeyPair& master, std::string_view text,
                              std::int64_t now) {
  const auto shown = parse_invite_key(text);
  // A wrong secret and an unknown id get the same answer, so that guessing teaches nothing.
  const bool is_known = shown && (raw(shown->id) == 0 || book.invites.contains(shown->id));
  if (!shown || !is_same_secret(shown->secret, invite_key(master, shown->id).secret) || !is_known) {
    return refused(
        "this master does not know that invite: ask its owner for a line that `gleaner invite "
        "create` prints");
  }
  if (raw(shown->id) == 0) return shown->id;
  const Invite& entry = book.invites.at(shown->id);
  if (entry.is_revoked) {
    return refused("the invite was revoked: ask the master's owner for another one");
  }
  if (is_expired(entry, now)) {
    return refused("the invite has expired: ask the master's owner for another one");
  }
  return shown->id;
}

Result<Standing> admit(AccessBook& book, const KeyPair& master, const KeyId& key,
                       std::string_view invite, std::int64_t now) {
  const auto shown = valid_invite(book, master, invite, now);
  if (!shown) return shown.error();
  if (raw(*shown) == 0) return Standing{key, Role::kAdmin, true, false, *shown};
  Invite& entry = book.invites.at(*shown);
  if (is_banned(book, key)) {
    const std::string& reason = book.peers.at(key).reason;
    return refused(fmt::format("this key is banned{}: ask the master's owner",
                               reason.empty() ? "" : " (" + reason + ")"));
  }
  if (!entry.is_reusable) {
    if (entry.used_by && *entry.used_by != key) {
      return refused(
          "the invite was for one key, and another one has used it: ask the master's owner for an "
          "invite of your own (a volunteer keeps its key only in a --cache folder)");
    }
    entry.used_by = key;
  }
  const bool trusts = is_trusted(book, key, entry);
  return Standing{key, entry.role, trusts, false, *shown, !trusts && is_suspended(entry)};
}

Result<PeerRule*> rule_of(AccessBook& book, const KeyId& key) {
  if (!book.peers.contains(key) && book.peers.size() >= kPeersMax) {
    return Error{ErrorCode::kResources,
                 fmt::format("{} keys are banned or approved, and no more are kept", kPeersMax)};
  }
  return &book.peers[key];
}

std::string reason_to_go(const AccessBook& book, const Standing& standing, std::int64_t now) {
  if (standing.is_local || raw(standing.invite) == 0) return "";
  if (is_banned(book, standing.identity)) {
    const std::string& reason = book.peers.at(standing.identity).reason;
    return fmt::format("the master's owner has banned this key{}",
                       reason.empty() ? "" : " (" + reason + ")");
  }
  const auto invite = book.invites.find(standing.invite);
  if (invite == book.invites.end() || invite->second.is_revoked) {
    return "the master's owner has revoked the invite by which this volunteer came";
  }
  if (is_expired(invite->second, now)) {
    return "the invite by which this volunteer came has expired: ask the master's owner for "
           "another one";
  }
  return "";
}

Result<Role> reader_role(const PageAccess& access, std::string_view invite, std::int64_t now) {
  if (!access.key) return Role::kObserver;
  const auto shown = valid_invite(access.book, *access.key, invite, now);
  if (!shown) return shown.error();
  if (*shown == InviteId{}) return Role::kAdmin;
  const Invite& entry = access.book.invites.at(*shown);
  if (!entry.is_reusable) {
    return Error{ErrorCode::kInvite,
                 "the invite is for one key, which a browser does not have: ask the master's owner "
                 "for an invite that `gleaner invite create --reusable` made"};
  }
  return entry.role;
}

}  // namespace gleaner

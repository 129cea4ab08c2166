// Invites, and what was decided about peers. Plain data with rules: time arrives as an argument, in
// seconds since 1970, because invites outlive the process. No I/O.
//
// No invite's secret is kept, not even its hash: it follows from the master's key and the invite's
// id (KeyPair::derive), so that the file alone opens nothing, and an open invite can be shown
// again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/access/key_pair.hpp"
#include "common/access/standing.hpp"
#include "common/result.hpp"

namespace gleaner {

struct Invite {
  Role role = Role::kVolunteer;
  bool is_trusted = false;
  bool is_reusable = false;
  bool is_revoked = false;
  std::int64_t created = 0;
  std::int64_t expires = 0;       // 0: never
  std::optional<KeyId> used_by;   // of one that is not reusable: the only key that has it
  std::string label;              // printable
  std::uint32_t convictions = 0;  // keys that came by it and gave false answers
  friend bool operator==(const Invite&, const Invite&) = default;
};

// A decision about a key, whatever its invite says.
struct PeerRule {
  bool is_banned = false;
  bool is_approved = false;
  std::string name;    // as it called itself then; printable
  std::string reason;  // of the ban; printable
  friend bool operator==(const PeerRule&, const PeerRule&) = default;
};

struct AccessBook {
  std::string where;  // HOST:PORT at which the master last listened; empty before
  std::map<InviteId, Invite> invites;
  std::map<KeyId, PeerRule> peers;
  friend bool operator==(const AccessBook&, const AccessBook&) = default;
};

InviteKey invite_key(const KeyPair& master, InviteId id);

// Makes an invite; kResources when there are kInvitesMax and none that can be forgotten (revoked or
// expired ones are, the oldest first).
Result<InviteId> add_invite(AccessBook& book, Invite invite);

// Whether strangers that are new may no longer come by it: several that did were convicted.
bool is_suspended(const Invite& invite);

bool is_banned(const AccessBook& book, const KeyId& key);

// "open", "used", "expired", "revoked", "suspended".
const char* state_of(const Invite& invite, std::int64_t now);

// The invite that `text` shows, while it is open: not revoked, not expired. Zero is that of the
// holder of the store. An error is a sentence for who is refused.
Result<InviteId> valid_invite(const AccessBook& book, const KeyPair& master, std::string_view text,
                              std::int64_t now);

// As whom the holder of `key` comes who shows `invite`; it is written down whom a one-off invite
// has admitted. An error is a sentence for who is refused.
Result<Standing> admit(AccessBook& book, const KeyPair& master, const KeyId& key,
                       std::string_view invite, std::int64_t now);

// Why one who was admitted must go now: its key was banned, or its invite was revoked or has
// expired. Empty: it may stay.
std::string reason_to_go(const AccessBook& book, const Standing& standing, std::int64_t now);

// Trusted by its invite or by approval.
bool is_trusted(const AccessBook& book, const KeyId& key, const Invite& invite);

// The rule of a key, to be changed; it is made if there is none. kResources when kPeersMax keys
// have one, since a book with more could not be read again.
Result<PeerRule*> rule_of(AccessBook& book, const KeyId& key);

// One line for each entry. parse() refuses what print() does not write.
std::string print(const AccessBook& book);
Result<AccessBook> parse_access_book(std::string_view text);

// Who may read a run's page from elsewhere, where nobody proves a key: decided from a copy of what
// the gate knows, since the page has a thread of its own. No I/O.
struct PageAccess {
  std::optional<KeyPair> key;  // the master's; none where it encrypts nothing and knows no invites
  AccessBook book;
};

// As what the holder of `invite` reads. An error is a sentence for who is refused.
Result<Role> reader_role(const PageAccess& access, std::string_view invite, std::int64_t now);

}  // namespace gleaner

// Invites, and decisions about peers. Plain data with rules: time arrives as an argument, in
// seconds since 1970, because invites outlive the process. No I/O.
//
// No invite's secret is stored, not even its hash: it follows from the master's key and the
// invite's id (KeyPair::derive). The file alone therefore opens nothing, and an open invite can be
// shown again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

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
  std::optional<KeyId> used_by;   // of a one-off invite: the only key that has it
  std::string label;              // printable
  std::uint32_t convictions = 0;  // keys that came by it and gave false answers
  friend bool operator==(const Invite&, const Invite&) = default;
};

// A decision about a key, which overrides its invite.
struct PeerRule {
  bool is_banned = false;
  bool is_approved = false;
  std::string name;    // as the peer called itself then; printable
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

// Makes an invite. kResources when there are kInvitesMax; the oldest revoked or expired invites are
// forgotten before that.
Result<InviteId> add_invite(AccessBook& book, Invite invite);

// Whether the invite admits no new strangers any more: several of its strangers were convicted.
bool is_suspended(const Invite& invite);

bool is_banned(const AccessBook& book, const KeyId& key);

// "open", "used", "expired", "revoked", "suspended".
const char* state_of(const Invite& invite, std::int64_t now);

// The id of the open invite that `text` shows: not revoked, not expired. Zero is the invite of the
// store's owner. The error is a sentence for the refused peer.
Result<InviteId> valid_invite(const AccessBook& book, const KeyPair& master, std::string_view text,
                              std::int64_t now);

// The standing of the holder of `key` that shows `invite`. Records the key that a one-off invite
// admits. The error is a sentence for the refused peer.
Result<Standing> admit(AccessBook& book, const KeyPair& master, const KeyId& key,
                       std::string_view invite, std::int64_t now);

// Why an admitted peer must go now: its key was banned, or its invite was revoked or has expired.
// Empty: it may stay.
std::string reason_to_go(const AccessBook& book, const Standing& standing, std::int64_t now);

// Trusted by its invite or by approval.
bool is_trusted(const AccessBook& book, const KeyId& key, const Invite& invite);

// The rule of a key, for changes; made if there is none. kResources when kPeersMax keys have rules:
// a larger book could not be read again.
Result<PeerRule*> rule_of(AccessBook& book, const KeyId& key);

// Writes one line per entry. parse_access_book() refuses any other text.
std::string print(const AccessBook& book);
Result<AccessBook> parse_access_book(std::string_view text);

// Decides who may read a run's page from elsewhere, by an invite without a key. A copy of the
// gate's state for the page's thread. No I/O.
struct PageAccess {
  std::optional<KeyPair> key;  // the master's; unset if it encrypts nothing and has no invites
  AccessBook book;
};

// The role of a reader with `invite`. The error is a sentence for the refused reader.
Result<Role> reader_role(const PageAccess& access, std::string_view invite, std::int64_t now);

}  // namespace gleaner

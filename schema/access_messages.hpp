// An administrator asks a master about who may do what; these are requests and answers. The same
// structs serve a store that no master trains; see master/access.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/access/role.hpp"

namespace gleaner {

enum class AccessVerb : std::uint8_t {
  kListInvites,
  kCreateInvite,
  kRevokeInvite,
  kListPeers,
  kApprove,  // a stranger is trusted from now on
  kBan,      // a key is refused, whatever its invite
  kUnban,
};

// First and only message of a connection that administers.
struct AccessRequest {
  std::uint32_t protocol_min = 0;
  std::uint32_t protocol_max = 0;
  std::string build;   // version of the program, for people
  std::string invite;  // of an administrator, as text
  AccessVerb verb = AccessVerb::kListInvites;
  // An invite's id; or a peer: its id, the begin of it, or its name. Of a ban the reason follows in
  // `label`.
  std::string subject;
  // Wishes for an invite that is to be made.
  Role role = Role::kVolunteer;
  bool is_trusted = false;
  bool is_reusable = false;
  std::uint64_t expires_s = 0;  // from now; 0: never
  std::string label;            // for people
  friend bool operator==(const AccessRequest&, const AccessRequest&) = default;
};

struct InviteEntry {
  std::string id;
  Role role = Role::kVolunteer;
  bool is_trusted = false;
  bool is_reusable = false;
  std::string state;               // "open", "used", "expired", "revoked"
  std::uint64_t created_wall = 0;  // seconds since 1970
  std::uint64_t expires_wall = 0;  // 0: never
  std::string address;             // to be pasted; empty unless the invite is open or used
  std::string label;
  friend bool operator==(const InviteEntry&, const InviteEntry&) = default;
};

struct PeerEntry {
  std::string id;      // of its key
  std::string name;    // as it calls itself
  std::string peer;    // address; empty when it was not seen since the master started
  std::string invite;  // by which it came last; empty when not known
  bool is_here = false;
  bool is_trusted = false;
  bool is_banned = false;
  std::string reason;  // of a ban
  friend bool operator==(const PeerEntry&, const PeerEntry&) = default;
};

struct AccessAnswer {
  std::uint32_t protocol = 0;
  std::string sentence;  // what was done; empty for a list
  std::vector<InviteEntry> invites;
  std::vector<PeerEntry> peers;
  friend bool operator==(const AccessAnswer&, const AccessAnswer&) = default;
};

}  // namespace gleaner

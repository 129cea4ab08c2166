// A role says what somebody may do with a run; a standing adds how far it is trusted.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "common/access/invite_key.hpp"
#include "common/access/key_id.hpp"

namespace gleaner {

enum class Role : std::uint8_t {
  kObserver,   // sees figures of the run as a whole
  kVolunteer,  // trains; sees what an observer sees
  kAdmin,      // sees names and addresses; makes and revokes invites; bans
};

// "observer", "volunteer", "admin".
const char* role_name(Role role);
std::optional<Role> parse_role(std::string_view name);

// As whom somebody takes part: decided when it comes, from its key and its invite.
struct Standing {
  KeyId identity;
  Role role = Role::kVolunteer;
  bool is_trusted = true;  // else a stranger, whose work is to be checked
  bool is_local = false;   // in the master's own process
  InviteId invite{};  // by which it came; zero for the holder of the store and local volunteers
  bool is_suspended = false;  // its invite is, for all that have not proved themselves
  friend bool operator==(const Standing&, const Standing&) = default;
};

}  // namespace gleaner

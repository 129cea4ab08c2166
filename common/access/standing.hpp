// A role says what somebody may do with a run; a standing adds how far it is trusted.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/bytes.hpp"

namespace gleaner {

// Which key somebody has: the first 128 bits of the SHA-256 of its public part, as certificates
// write it (SubjectPublicKeyInfo). It is public: to act under it takes the key itself.
struct KeyId {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend auto operator<=>(const KeyId&, const KeyId&) = default;
};

inline constexpr std::size_t kKeyIdBytes = 16;
inline constexpr std::size_t kKeyIdTextSize = 26;

// 26 characters of base32.
std::string to_text(const KeyId& id);
std::optional<KeyId> parse_key_id(std::string_view text);

// The id of a public key that is written as `public_key`; the name of anything else that is bytes.
KeyId key_id_of(ByteView public_key);

// An invited person holds the id of the invite and the secret that proves it. As text: 8
// characters of the id and 26 of the secret, base32.

// 40 random bits. Zero is the invite that whoever holds the store's folder has by that.
enum class InviteId : std::uint64_t {};

inline constexpr std::uint64_t kInviteIdMax = (std::uint64_t{1} << 40) - 1;
inline constexpr std::size_t kInviteIdTextSize = 8;
inline constexpr std::size_t kInviteTextSize = 34;

using InviteSecret = std::array<std::uint8_t, 16>;

struct InviteKey {
  InviteId id{};
  InviteSecret secret{};
  friend bool operator==(const InviteKey&, const InviteKey&) = default;
};

std::string to_text(InviteId id);
std::optional<InviteId> parse_invite_id(std::string_view text);

std::string to_text(const InviteKey& key);
std::optional<InviteKey> parse_invite_key(std::string_view text);

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

// As whom a volunteer with this key takes part that comes through a relay. A relay may say anything
// of who has come: unless it is trusted, nobody is blamed or believed elsewhere for what it passes.
KeyId identity_behind(const Standing& relay, const KeyId& key);

}  // namespace gleaner

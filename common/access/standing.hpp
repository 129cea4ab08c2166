// A role says what a key may do with a run; a standing adds how far it is trusted.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/bytes.hpp"

namespace gleaner {

// The id of a key: the first 128 bits of the SHA-256 of its public part as certificates write it
// (SubjectPublicKeyInfo). The id is public; acting under it needs the key.
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

// The id of an encoded public key, or of any other bytes.
KeyId key_id_of(ByteView public_key);

// An invite consists of its id and a secret that proves it. As text: 8 characters of the id and 26
// of the secret, base32.

// 40 random bits. Zero is the implicit invite of the holder of the store's folder.
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
  kObserver,   // sees figures of the whole run
  kVolunteer,  // trains; sees what an observer sees
  kAdmin,      // sees names and addresses; makes and revokes invites; bans
};

// "observer", "volunteer", "admin".
const char* role_name(Role role);
std::optional<Role> parse_role(std::string_view name);

// The standing of a participant, decided when it connects, from its key and its invite.
struct Standing {
  KeyId identity;
  Role role = Role::kVolunteer;
  bool is_trusted = true;     // else a stranger, whose work is audited
  bool is_local = false;      // in the master's own process
  InviteId invite{};          // its invite; zero for the holder of the store and local volunteers
  bool is_suspended = false;  // not trusted, and its invite is suspended
  friend bool operator==(const Standing&, const Standing&) = default;
};

// The identity of a volunteer that comes through a relay: its key if the relay is trusted, else a
// hash of both keys. An untrusted relay may invent volunteers, so they must not affect other
// identities.
KeyId identity_behind(const Standing& relay, const KeyId& key);

}  // namespace gleaner

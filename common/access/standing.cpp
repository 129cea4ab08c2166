#include "common/access/standing.hpp"

#include <openssl/sha.h>

#include <algorithm>

#include "common/ids.hpp"

namespace gleaner {
namespace {

std::uint64_t load_be(const std::uint8_t* bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = value << 8 | bytes[i];
  return value;
}

constexpr std::size_t kIdBytes = 5;
static_assert(base32_size(kIdBytes) == kInviteIdTextSize &&
              kInviteIdTextSize + base32_size(sizeof(InviteSecret)) == kInviteTextSize);

}  // namespace

std::string to_text(const KeyId& id) {
  std::array<std::uint8_t, kKeyIdBytes> bytes{};
  for (unsigned i = 0; i < 8; ++i) {
    bytes[i] = static_cast<std::uint8_t>(id.high >> (56 - 8 * i));
    bytes[8 + i] = static_cast<std::uint8_t>(id.low >> (56 - 8 * i));
  }
  return to_base32(bytes);
}

std::optional<KeyId> parse_key_id(std::string_view text) {
  const auto bytes = from_base32(text, kKeyIdBytes);
  if (!bytes) return std::nullopt;
  return KeyId{load_be(bytes->data()), load_be(bytes->data() + 8)};
}

KeyId key_id_of(ByteView public_key) {
  std::array<std::uint8_t, SHA256_DIGEST_LENGTH> digest{};
  SHA256(public_key.data(), public_key.size(), digest.data());
  return {load_be(digest.data()), load_be(digest.data() + 8)};
}

KeyId identity_behind(const Standing& relay, const KeyId& key) {
  if (relay.is_trusted) return key;
  const std::string both = to_text(relay.identity) + to_text(key);
  return key_id_of({reinterpret_cast<const std::uint8_t*>(both.data()), both.size()});
}

std::string to_text(InviteId id) {
  std::array<std::uint8_t, kIdBytes> bytes{};
  for (std::size_t i = 0; i < kIdBytes; ++i) {
    bytes.at(i) = static_cast<std::uint8_t>(raw(id) >> (8 * (kIdBytes - 1 - i)));
  }
  return to_base32(bytes);
}

std::optional<InviteId> parse_invite_id(std::string_view text) {
  const auto bytes = from_base32(text, kIdBytes);
  if (!bytes) return std::nullopt;
  std::uint64_t id = 0;
  for (const std::uint8_t byte : *bytes) id = id << 8 | byte;
  return InviteId{id};
}

std::string to_text(const InviteKey& key) {
  return to_text(key.id) + to_base32(key.secret);
}

std::optional<InviteKey> parse_invite_key(std::string_view text) {
  if (text.size() != kInviteTextSize) return std::nullopt;
  const auto id = parse_invite_id(text.substr(0, kInviteIdTextSize));
  const auto secret = from_base32(text.substr(kInviteIdTextSize), sizeof(InviteSecret));
  if (!id || !secret) return std::nullopt;
  InviteKey key{*id, {}};
  std::copy(secret->begin(), secret->end(), key.secret.begin());
  return key;
}

const char* role_name(Role role) {
  switch (role) {
    case Role::kObserver:
      return "observer";
    case Role::kVolunteer:
      return "volunteer";
    case Role::kAdmin:
      return "admin";
  }
  return "unknown";
}

std::optional<Role> parse_role(std::string_view name) {
  for (const Role role : {Role::kObserver, Role::kVolunteer, Role::kAdmin}) {
    if (name == role_name(role)) return role;
  }
  return std::nullopt;
}

}  // namespace gleaner

#include "common/access/invite_key.hpp"

#include <algorithm>

#include "common/access/base32.hpp"
#include "common/ids.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kIdBytes = 5;
static_assert(base32_size(kIdBytes) == kInviteIdTextSize &&
              kInviteIdTextSize + base32_size(sizeof(InviteSecret)) == kInviteTextSize);

}  // namespace

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

}  // namespace gleaner

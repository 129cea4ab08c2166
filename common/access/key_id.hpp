// Which key somebody has: the first 128 bits of the SHA-256 of its public part, as certificates
// write it (SubjectPublicKeyInfo). It is public: to act under it takes the key itself.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/bytes.hpp"

namespace gleaner {

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

}  // namespace gleaner

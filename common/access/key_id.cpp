#include "common/access/key_id.hpp"

#include <openssl/sha.h>

#include <array>

#include "common/access/base32.hpp"

namespace gleaner {
namespace {

std::uint64_t load_be(const std::uint8_t* bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = value << 8 | bytes[i];
  return value;
}

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

}  // namespace gleaner

// A key of Ed25519: who a master or a volunteer is. Its file holds the private half and belongs to
// its owner alone (see secret_file.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/access/standing.hpp"
#include "common/result.hpp"

namespace gleaner {

using PublicKey = std::array<std::uint8_t, 32>;
using Signature = std::array<std::uint8_t, 64>;

class KeyPair {
 public:
  // From the system's generator.
  static KeyPair make();
  // The key in the file `path`, made there when it is missing. Errors name the file.
  static Result<KeyPair> load_or_make(const std::string& path);
  // Loads one that must be there: kNotFound when it is missing.
  static Result<KeyPair> load(const std::string& path);

  [[nodiscard]] const KeyId& id() const { return id_; }

  [[nodiscard]] const PublicKey& public_key() const { return public_key_; }

  // Whoever knows the public half can tell that the holder of the key has signed `text`. A text
  // begins with a word for what it is, so that no signature serves another purpose.
  [[nodiscard]] Signature sign(std::string_view text) const;

  // The private half; for the TLS context.
  [[nodiscard]] const std::array<std::uint8_t, 32>& seed() const { return seed_; }

  // A secret for `purpose` that only the holder of the key can know, and always knows: HMAC-SHA256,
  // its first 128 bits.
  [[nodiscard]] InviteSecret derive(std::string_view purpose) const;

 private:
  explicit KeyPair(const std::array<std::uint8_t, 32>& seed);

  std::array<std::uint8_t, 32> seed_;
  PublicKey public_key_;
  KeyId id_;
};

// The id of a public half; zero for bytes that are no key.
KeyId id_of(const PublicKey& key);

// Whether the holder of `key` has signed `text`.
bool is_signed_by(const PublicKey& key, std::string_view text, const Signature& signature);

// Whether two secrets are equal, in a time that does not depend on where they differ.
bool is_same_secret(const InviteSecret& a, const InviteSecret& b);

// Bits from the system's generator.
std::uint64_t random_bits();

}  // namespace gleaner

// An Ed25519 key: the identity of a master or a volunteer. Its file contains the private half and
// is only for its owner (see secret_file.hpp).
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
  // A new key from the system's generator.
  static KeyPair make();
  // The key in the file `path`, which is made if missing. Errors name the file.
  static Result<KeyPair> load_or_make(const std::string& path);
  // Loads an existing key: kNotFound when it is missing.
  static Result<KeyPair> load(const std::string& path);

  [[nodiscard]] const KeyId& id() const { return id_; }

  [[nodiscard]] const PublicKey& public_key() const { return public_key_; }

  // Signs `text` for verification with the public half. A text begins with a word for its purpose,
  // so that no signature serves another purpose.
  [[nodiscard]] Signature sign(std::string_view text) const;

  // The private half; for the TLS context.
  [[nodiscard]] const std::array<std::uint8_t, 32>& seed() const { return seed_; }

  // A secret for `purpose` that only the holder of the key can compute, always the same: the first
  // 128 bits of HMAC-SHA256.
  [[nodiscard]] InviteSecret derive(std::string_view purpose) const;

 private:
  explicit KeyPair(const std::array<std::uint8_t, 32>& seed);

  std::array<std::uint8_t, 32> seed_;
  PublicKey public_key_;
  KeyId id_;
};

// The id of a public half; zero for bytes that are not a key.
KeyId id_of(const PublicKey& key);

// Whether the signature of `text` is by `key`.
bool is_signed_by(const PublicKey& key, std::string_view text, const Signature& signature);

// Compares in a time that does not depend on where the secrets differ.
bool is_same_secret(const InviteSecret& a, const InviteSecret& b);

// 64 random bits from the system's generator.
std::uint64_t random_bits();

// Ends the program, by an exception for main, unless OpenSSL is willing: an administrator's policy
// may forbid an algorithm.
void require_algorithm(bool is_allowed, const char* algorithm);

}  // namespace gleaner

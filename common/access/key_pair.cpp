#include "common/access/key_pair.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/x509.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <stdexcept>

#include "common/access/secret_file.hpp"
#include "common/bytes.hpp"
#include "common/os/process.hpp"

namespace gleaner {
namespace {

constexpr std::string_view kFileBegin = "gleaner-key-1 ";
constexpr std::size_t kFileBytesMax = 256;

std::array<std::uint8_t, 32> random_seed() {
  std::array<std::uint8_t, 32> seed{};
  GLEANER_CHECK(os::random_bytes(seed));
  return seed;
}

using NativeKey = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Digest = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

NativeKey private_half(const std::array<std::uint8_t, 32>& seed) {
  NativeKey key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size()),
                &EVP_PKEY_free);
  require_algorithm(key != nullptr, "Ed25519");
  return key;
}

// Null for bytes that are not a key.
NativeKey public_half(const PublicKey& key) {
  return {EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, key.data(), key.size()),
          &EVP_PKEY_free};
}

PublicKey public_key_of_seed(const std::array<std::uint8_t, 32>& seed) {
  PublicKey key{};
  std::size_t size = key.size();
  const NativeKey native = private_half(seed);
  require_algorithm(EVP_PKEY_get_raw_public_key(native.get(), key.data(), &size) == 1, "Ed25519");
  return key;
}

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

KeyPair::KeyPair(const std::array<std::uint8_t, 32>& seed)
    : seed_(seed), public_key_(public_key_of_seed(seed)), id_(id_of(public_key_)) {}

KeyId id_of(const PublicKey& key) {
  const NativeKey native = public_half(key);
  std::uint8_t* written = nullptr;
  const int size = native ? i2d_PUBKEY(native.get(), &written) : 0;
  if (size <= 0) return {};
  const KeyId id = key_id_of({written, static_cast<std::size_t>(size)});
  OPENSSL_free(written);
  return id;
}

Signature KeyPair::sign(std::string_view text) const {
  Signature signature{};
  std::size_t size = signature.size();
  const NativeKey key = private_half(seed_);
  const Digest digest(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  GLEANER_CHECK(digest != nullptr);
  require_algorithm(
      EVP_DigestSignInit(digest.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
          EVP_DigestSign(digest.get(), signature.data(), &size, bytes_of(text), text.size()) == 1,
      "Ed25519");
  GLEANER_CHECK(size == signature.size());
  return signature;
}

bool is_signed_by(const PublicKey& key, std::string_view text, const Signature& signature) {
  const NativeKey native = public_half(key);
  const Digest digest(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  return native && digest &&
         EVP_DigestVerifyInit(digest.get(), nullptr, nullptr, nullptr, native.get()) == 1 &&
         EVP_DigestVerify(digest.get(), signature.data(), signature.size(), bytes_of(text),
                          text.size()) == 1;
}

KeyPair KeyPair::make() {
  return KeyPair(random_seed());
}

Result<KeyPair> KeyPair::load(const std::string& path) {
  const auto text = read_secret_file(path, kFileBytesMax);
  if (!text) return text.error();
  if (!*text) return Error{ErrorCode::kNotFound, path + " does not exist"};
  std::string_view line(**text);
  if (line.ends_with('\n')) line.remove_suffix(1);
  std::array<std::uint8_t, 32> seed{};
  const auto bytes = line.starts_with(kFileBegin)
                         ? from_base32(line.substr(kFileBegin.size()), seed.size())
                         : std::nullopt;
  if (!bytes) {
    return Error{ErrorCode::kCorrupt,
                 path +
                     " does not hold a key: delete it, and its owner gets a new one, which "
                     "others take for somebody else"};
  }
  std::copy(bytes->begin(), bytes->end(), seed.begin());
  return KeyPair(seed);
}

Result<KeyPair> KeyPair::load_or_make(const std::string& path) {
  Result<KeyPair> there = load(path);
  if (there || there.error().code != ErrorCode::kNotFound) return there;
  const std::string text = fmt::format("{}{}\n", kFileBegin, to_base32(random_seed()));
  if (auto written = write_secret_file(path, text, SecretFile::kNew); !written) {
    return written.error();
  }
  return load(path);  // perhaps the key of a program that started at the same time
}

InviteSecret KeyPair::derive(std::string_view purpose) const {
  std::array<std::uint8_t, 32> mac{};
  unsigned size = 0;
  const std::string text(purpose);
  HMAC(EVP_sha256(), seed_.data(), static_cast<int>(seed_.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac.data(), &size);
  require_algorithm(size == mac.size(), "HMAC with SHA-256");
  InviteSecret secret{};
  std::copy_n(mac.begin(), secret.size(), secret.begin());
  return secret;
}

bool is_same_secret(const InviteSecret& a, const InviteSecret& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

void require_algorithm(bool is_allowed, const char* algorithm) {
  if (is_allowed) return;
  const char* const named = std::getenv("OPENSSL_CONF");  // NOLINT(concurrency-mt-unsafe)
  const char* const folder = OPENSSL_info(OPENSSL_INFO_CONFIG_DIR);
  const bool is_fips = EVP_default_properties_is_fips_enabled(nullptr) == 1;
  throw std::runtime_error(fmt::format(
      "the OpenSSL of this machine refuses {}, by its policy{} ({}): Gleaner needs it to tell who "
      "is who and to encrypt; name a configuration that allows it in OPENSSL_CONF, for this "
      "program alone",
      algorithm, is_fips ? " of FIPS" : "",
      named != nullptr ? named : std::string(folder != nullptr ? folder : "") + "/openssl.cnf"));
}

std::uint64_t random_bits() {
  std::uint64_t bits = 0;
  GLEANER_CHECK(os::random_bytes({reinterpret_cast<std::uint8_t*>(&bits), sizeof bits}));
  return bits;
}

}  // namespace gleaner

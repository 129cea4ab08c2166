#include "common/access/sha256.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include "common/access/key_pair.hpp"
#include "common/result.hpp"

namespace gleaner {

struct Sha256::Impl {
  struct Free {
    void operator()(EVP_MD_CTX* freed) const { EVP_MD_CTX_free(freed); }
  };

  std::unique_ptr<EVP_MD_CTX, Free> context{EVP_MD_CTX_new()};
};

Sha256::Sha256() : impl_(std::make_unique<Impl>()) {
  GLEANER_CHECK(impl_->context != nullptr);
  require_algorithm(EVP_DigestInit_ex(impl_->context.get(), EVP_sha256(), nullptr) == 1, "SHA-256");
}

Sha256::~Sha256() = default;

void Sha256::update(ByteView bytes) {
  GLEANER_CHECK(EVP_DigestUpdate(impl_->context.get(), bytes.data(), bytes.size()) == 1);
}

std::array<std::uint8_t, 32> Sha256::finish_bytes() {
  std::array<std::uint8_t, 32> digest{};
  unsigned bytes = 0;
  GLEANER_CHECK(EVP_DigestFinal_ex(impl_->context.get(), digest.data(), &bytes) == 1);
  GLEANER_CHECK(bytes == digest.size());
  return digest;
}

std::string Sha256::finish() {
  std::string text;
  for (const std::uint8_t byte : finish_bytes()) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace gleaner

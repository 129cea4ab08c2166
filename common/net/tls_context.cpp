#include "common/net/tls_context.hpp"

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>

namespace gleaner {
namespace {

// Our certificates take about 200 bytes.
constexpr long kCertificateBytesMax = 4096;
constexpr const char* kAlgorithm = "ed25519";

int peer_key_index() {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

std::optional<KeyId> id_of(X509* certificate) {
  EVP_PKEY* key = certificate == nullptr ? nullptr : X509_get0_pubkey(certificate);
  if (key == nullptr || EVP_PKEY_base_id(key) != EVP_PKEY_ED25519) return std::nullopt;
  std::uint8_t* written = nullptr;
  const int size = i2d_PUBKEY(key, &written);
  if (size <= 0) return std::nullopt;
  const KeyId id = key_id_of({written, static_cast<std::size_t>(size)});
  OPENSSL_free(written);
  return id;
}

// Replaces OpenSSL's search for an authority. Other code checks the signature by the key.
int check_peer(X509_STORE_CTX* store, void*) {
  auto* connection =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* peer = static_cast<PeerKey*>(SSL_get_ex_data(connection, peer_key_index()));
  if (peer != nullptr) {
    peer->shown = id_of(X509_STORE_CTX_get0_cert(store));
    if (peer->shown && (!peer->expected || *peer->expected == *peer->shown)) return 1;
  }
  X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
  return 0;
}

// The certificate is the same at every start: only the key matters, and dates would only make it
// expire.
std::unique_ptr<X509, decltype(&X509_free)> certificate_for(EVP_PKEY* key) {
  std::unique_ptr<X509, decltype(&X509_free)> made(X509_new(), &X509_free);
  GLEANER_CHECK(made != nullptr);
  X509_set_version(made.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1);
  GLEANER_CHECK(ASN1_TIME_set_string(X509_getm_notBefore(made.get()), "20200101000000Z") == 1);
  GLEANER_CHECK(ASN1_TIME_set_string(X509_getm_notAfter(made.get()), "99991231235959Z") == 1);
  const auto* name = reinterpret_cast<const unsigned char*>("gleaner");
  X509_NAME* subject = X509_get_subject_name(made.get());
  GLEANER_CHECK(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, name, -1, -1, 0) == 1);
  X509_set_issuer_name(made.get(), subject);
  GLEANER_CHECK(X509_set_pubkey(made.get(), key) == 1);
  require_algorithm(X509_sign(made.get(), key, nullptr) > 0, "Ed25519");
  return made;
}

}  // namespace

TlsContext::TlsContext(const KeyPair& key) : context_(asio::ssl::context::tls) {
  SSL_CTX* const context = context_.native_handle();
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> native(
      EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, key.seed().data(), key.seed().size()),
      &EVP_PKEY_free);
  require_algorithm(native != nullptr, "Ed25519");
  const auto certificate = certificate_for(native.get());
  require_algorithm(SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1 &&
                        SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1,
                    "TLS 1.3");
  require_algorithm(
      SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256") == 1,
      "AES-128-GCM");
  require_algorithm(SSL_CTX_set1_groups_list(context, "X25519") == 1, "X25519");
  require_algorithm(SSL_CTX_set1_sigalgs_list(context, kAlgorithm) == 1 &&
                        SSL_CTX_set1_client_sigalgs_list(context, kAlgorithm) == 1 &&
                        SSL_CTX_use_certificate(context, certificate.get()) == 1 &&
                        SSL_CTX_use_PrivateKey(context, native.get()) == 1,
                    "Ed25519");
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_max_cert_list(context, kCertificateBytesMax);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_cert_verify_callback(context, &check_peer, nullptr);
}

void watch_peer_key(SSL* connection, PeerKey& peer) {
  GLEANER_CHECK(SSL_set_ex_data(connection, peer_key_index(), &peer) == 1);
}

}  // namespace gleaner

// Encryption of connections: only TLS 1.3, with certificates of both sides. A peer is identified by
// its key; there is no certificate authority. Sessions are not resumed. Used from one thread;
// outlives its connections.
#pragma once

#include <asio/ssl/context.hpp>
#include <cstdint>
#include <optional>

#include "common/access/key_pair.hpp"

namespace gleaner {

// The keys of a handshake.
struct PeerKey {
  std::optional<KeyId> expected;  // another key ends the handshake before our key is sent
  std::optional<KeyId> shown;  // the peer's key; its possession is proved if the handshake succeeds
};

class TlsContext {
 public:
  // Makes a certificate for `key` that contains nothing else.
  explicit TlsContext(const KeyPair& key);
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  [[nodiscard]] asio::ssl::context& native() { return context_; }

 private:
  asio::ssl::context context_;
};

// The handshake of a TlsContext's connection writes to `peer`, which outlives the connection.
void watch_peer_key(SSL* connection, PeerKey& peer);

// The first byte of a TLS client's first message.
inline constexpr std::uint8_t kTlsHandshakeByte = 22;

}  // namespace gleaner

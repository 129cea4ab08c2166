// How connections are encrypted: TLS 1.3 alone, both sides show a certificate, and a peer is who
// its key says; no authority vouches for anybody. No session outlives its connection. Used from one
// thread; outlives the connections made with it.
#pragma once

#include <asio/ssl/context.hpp>
#include <cstdint>
#include <optional>

#include "common/access/key_pair.hpp"
#include "common/result.hpp"

namespace gleaner {

// A handshake learns this about the other side.
struct PeerKey {
  std::optional<KeyId> expected;  // any other key ends the handshake before we have shown ours
  std::optional<KeyId> shown;     // by the peer, who has proved that it is its own if all went well
};

class TlsContext {
 public:
  // Makes the certificate that shows `key`; it says nothing else.
  explicit TlsContext(const KeyPair& key);
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  [[nodiscard]] asio::ssl::context& native() { return context_; }

 private:
  asio::ssl::context context_;
};

// Lets the handshake of a connection made with a TlsContext write to `peer`, which outlives it.
void watch_peer_key(SSL* connection, PeerKey& peer);

// The first byte of what a TLS client says first.
inline constexpr std::uint8_t kTlsHandshakeByte = 22;

}  // namespace gleaner

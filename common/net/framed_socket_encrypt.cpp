// From plain text to TLS: the handshake, and sentences for those that do not come to one.
#include <fmt/format.h>

#include <array>
#include <asio/buffer.hpp>
#include <asio/ssl/error.hpp>

#include "common/net/framed_socket_impl.hpp"
#include "common/net/tokens.hpp"

namespace gleaner {

asio::awaitable<Result<std::uint8_t>> FramedSocket::Impl::first_byte(std::shared_ptr<Impl> self,
                                                                     Millis time_max) {
  const ReadScope scope(*self);
  self->arm(self->read_watch_, time_max, "nothing came");
  std::uint8_t byte = 0;
  const auto target = asio::buffer(&byte, 1);
  const TransferOutcome got =
      co_await self->socket_.async_receive(target, asio::socket_base::message_peek, kAsTuple);
  if (std::get<0>(got)) co_return self->broken_off(std::get<0>(got), false);
  co_return byte;
}

// Bytes that have come are taken first: closing before would reset the connection, and the peer
// would not learn why.
Error FramedSocket::Impl::refuse_plain_text() {
  asio::error_code error;
  std::array<std::uint8_t, 4096> thrown_away{};
  if (socket_.available(error) > 0) socket_.receive(asio::buffer(thrown_away), 0, error);
  socket_.send(asio::buffer(kTlsRefusal), 0, error);  // an empty queue has room for it
  return closed(
      ErrorCode::kProtocol,
      "it does not encrypt (TLS): a volunteer that was started with --insecure, or another "
      "program");
}

asio::awaitable<Result<KeyId>> FramedSocket::Impl::encrypt(std::shared_ptr<Impl> self,
                                                           TlsContext& tls,
                                                           std::optional<KeyId> master,
                                                           Millis time_max) {
  if (!self->is_open()) co_return Error{ErrorCode::kIo, self->close_reason_};
  const ReadScope scope(*self);
  self->peer_key_.expected = master;
  Stream::Tls& stream = self->stream_.encrypt(tls.native());
  watch_peer_key(stream.native_handle(), self->peer_key_);
  self->arm(self->read_watch_, time_max, "the TLS handshake was not over");
  const auto side = master ? asio::ssl::stream_base::client : asio::ssl::stream_base::server;
  const WaitOutcome done = co_await stream.async_handshake(side, kAsTuple);
  if (std::get<0>(done)) {
    co_return self->handshake_failed(std::get<0>(done), master.has_value());
  }
  co_return *self->peer_key_.shown;
}

Error FramedSocket::Impl::handshake_failed(const asio::error_code& error, bool is_client) {
  const PeerKey& peer = peer_key_;
  if (is_client && peer.shown && peer.expected && *peer.shown != *peer.expected) {
    return closed(
        ErrorCode::kIdentity,
        fmt::format(
            "WRONG MASTER: whoever answers at {} has the key {} instead of {}. Somebody may "
            "be reading along or pretending to be the master, or the run was made again in "
            "another folder. Nothing was sent. Ask the master's owner for the line that it "
            "prints, over a way that you trust",
            peer_, to_text(*peer.shown), to_text(*peer.expected)));
  }
  const bool is_end = error == asio::error::eof || error == asio::error::connection_reset ||
                      error == asio::ssl::error::stream_truncated;
  if (is_client && is_end) {
    return closed(
        ErrorCode::kIo,
        "the other side ended the connection instead of encrypting it: a master that was "
        "started with --insecure does that (then start this end with --insecure too), and "
        "one that has no time");
  }
  if (error == asio::error::operation_aborted) return broken_off(error, false);
  return closed(ErrorCode::kProtocol, "the TLS handshake failed: " + error.message());
}

}  // namespace gleaner

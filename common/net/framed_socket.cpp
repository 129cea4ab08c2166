// Reading, writing and closing.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <asio/buffer.hpp>
#include <asio/read.hpp>
#include <asio/ssl/error.hpp>
#include <asio/write.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "common/net/framed_socket_impl.hpp"
#include "common/net/task_group.hpp"

namespace gleaner {
namespace {

// Most frames per system call.
constexpr std::size_t kFramesPerWriteMax = 16;
constexpr std::size_t kFirstReadBytes = 64 * 1024;
// Most unsent bytes in the kernel.
constexpr int kUnsentBytesMax = 64 * 1024;

// How often the kernel asks a silent peer whether it is there.
constexpr Millis kProbeEvery{10'000};

using KeepAliveIdle = asio::detail::socket_option::integer<IPPROTO_TCP, os::kTcpKeepIdle>;
using KeepAliveInterval = asio::detail::socket_option::integer<IPPROTO_TCP, os::kTcpKeepInterval>;
using UnsentMax = asio::detail::socket_option::integer<IPPROTO_TCP, os::kTcpUnsentMax>;
using UserTimeout = asio::detail::socket_option::integer<IPPROTO_TCP, os::kTcpUserTimeout>;

Millis time_for(const FramedSocketLimits& limits, std::size_t bytes) {
  return limits.frame_time_max +
         Millis(static_cast<std::int64_t>(bytes * 1000 / limits.bytes_per_second_min));
}

// The beginning of a TLS client's first record. As a frame it would be larger than 64 KiB, which no
// first frame may be.
bool is_tls_hello(const std::array<std::uint8_t, kFrameHeaderBytes>& begin) {
  return begin[0] == kTlsHandshakeByte && begin[1] == 3 && begin[5] == 1;
}

}  // namespace

FramedSocket::Impl::Impl(asio::ip::tcp::socket socket, const FramedSocketLimits& limits)
    : limits_(limits),
      stream_(std::move(socket)),
      socket_(stream_.socket()),
      peer_(remote_text(socket_)),
      read_watch_(socket_.get_executor()),
      write_watch_(socket_.get_executor()),
      read_pause_(socket_.get_executor()),
      write_pause_(socket_.get_executor()),
      waiting_(limits_.send_budget.get(), [this] {
        close(
            "messages that wait to be sent take too much memory, and this connection's take the "
            "most");
      }) {
  asio::error_code ignored;  // a reset connection shows at its first use
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  socket_.set_option(asio::socket_base::keep_alive(true), ignored);
  socket_.set_option(UnsentMax(kUnsentBytesMax), ignored);
  const auto seconds = [](Millis time) { return static_cast<int>(time.count() / 1000); };
  socket_.set_option(KeepAliveIdle(seconds(kProbeEvery)), ignored);
  socket_.set_option(KeepAliveInterval(seconds(kProbeEvery)), ignored);
  socket_.set_option(UserTimeout(static_cast<int>(limits.frame_time_max.count())), ignored);
}

// ---- Closing -----------------------------------------------------------------------------------

void FramedSocket::Impl::arm(Watch& watch, Millis time_max, const char* what_is_late) {
  const std::uint64_t turn = ++watch.turn;
  watch.timer.expires_after(time_max);
  watch.timer.async_wait(
      [self = shared_from_this(), &watch, turn, time_max, what_is_late](auto error) {
        if (error || turn != watch.turn) return;
        self->close(fmt::format("{} for {} ms", what_is_late, time_max.count()));
      });
}

void FramedSocket::Impl::disarm(Watch& watch) {
  ++watch.turn;
  watch.timer.cancel();
}

void FramedSocket::Impl::close(std::string reason) {
  if (!is_open()) return;
  if (close_reason_.empty()) close_reason_ = std::move(reason);
  disarm(read_watch_);
  disarm(write_watch_);
  read_pause_.cancel();
  write_pause_.cancel();
  asio::error_code ignored;  // nothing can be done about a socket that does not close
  socket_.close(ignored);
}

void FramedSocket::Impl::finish(std::string reason) {
  if (!is_open() || is_finishing_) return;
  is_finishing_ = true;
  close_reason_ = std::move(reason);
  finish_if_written();
}

// If we closed at once while the peer still sends, the kernel would reset the connection, and the
// peer would lose bytes that it has not read yet. So our side is shut first, and the rest is read
// and discarded until the peer closes too.
void FramedSocket::Impl::finish_if_written() {
  if (!is_finishing_ || is_write_due_ || has_shut_down_ || !is_open()) return;
  has_shut_down_ = true;
  asio::error_code error;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, error);
  if (error) return close({});
  arm(write_watch_, limits_.linger_max, "the peer kept a finished connection open");
  discard_if_finished();
}

void FramedSocket::Impl::discard_if_finished() {
  if (!has_shut_down_ || is_reading_ || is_discarding_ || !is_open()) return;
  is_discarding_ = true;
  socket_.async_read_some(asio::buffer(discarded_),
                          [self = shared_from_this()](const asio::error_code& error, std::size_t) {
                            self->is_discarding_ = false;
                            if (error) return self->close({});
                            self->discard_if_finished();
                          });
}

// ---- Reading -----------------------------------------------------------------------------------

// Closes for `reason`, unless closed already. The error has the reason of the close.
Error FramedSocket::Impl::closed(ErrorCode code, std::string reason) {
  if (!is_open()) return Error{ErrorCode::kIo, close_reason_};
  close(std::move(reason));
  return Error{code, close_reason_};
}

Error FramedSocket::Impl::broken_off(const asio::error_code& error, bool is_within_frame) {
  // TLS would send a farewell too. Frames carry their size, so a truncation is noticed anyway, and
  // the end of the connection suffices.
  if (error == asio::error::eof || error == asio::ssl::error::stream_truncated) {
    return closed(ErrorCode::kIo, is_within_frame ? "the connection ended within a frame"
                                                  : "the peer closed the connection");
  }
  if (error == asio::error::operation_aborted) {
    // The reading task was cancelled. The queue after finish() is still sent.
    if (is_finishing_) return Error{ErrorCode::kIo, close_reason_};
    return closed(ErrorCode::kIo, "stopped");
  }
  return closed(ErrorCode::kIo, error.message());
}

asio::awaitable<Result<Bytes>> FramedSocket::Impl::read_frame(std::shared_ptr<Impl> self,
                                                              Millis time_max,
                                                              std::size_t payload_bytes_max,
                                                              FrameDeadline deadline) {
  if (!self->is_open() || self->is_finishing_) co_return Error{ErrorCode::kIo, self->close_reason_};
  std::optional<ReadScope> scope(*self);
  if (self->limits_.pace_in && self->limits_.pace_in->ready() > monotonic_now()) {
    self->read_pause_.expires_after(self->limits_.pace_in->ready() - monotonic_now());
    const WaitOutcome waited = co_await self->read_pause_.async_wait(kAsTuple);
    if (std::get<0>(waited)) co_return self->broken_off(std::get<0>(waited), false);
  }
  Result<Bytes> payload = co_await read_parts(self, time_max, payload_bytes_max, deadline);
  scope.reset();
  self->discard_if_finished();
  co_return payload;
}

asio::awaitable<Result<Bytes>> FramedSocket::Impl::read_parts(std::shared_ptr<Impl> self,
                                                              Millis time_max,
                                                              std::size_t payload_bytes_max,
                                                              FrameDeadline deadline) {
  self->arm(self->read_watch_, time_max,
            deadline == FrameDeadline::kHeader ? "nothing came" : "no whole frame came");
  std::array<std::uint8_t, kFrameHeaderBytes> header_bytes{};
  const auto header_target = asio::buffer(header_bytes);
  const TransferOutcome got_header =
      co_await asio::async_read(self->stream_, header_target, kAsTuple);
  self->bytes_in_ += std::get<1>(got_header);
  if (std::get<0>(got_header)) {
    const bool is_refused =
        std::get<1>(got_header) == kTlsRefusal.size() &&
        std::equal(kTlsRefusal.begin(), kTlsRefusal.end(), header_bytes.begin());
    if (is_refused) co_return self->closed(ErrorCode::kProtocol, kOneSideEncrypts);
    co_return self->broken_off(std::get<0>(got_header), std::get<1>(got_header) != 0);
  }
  const Result<FrameHeader> header = parse_frame_header(header_bytes);
  if (!header) co_return self->closed(header.error().code, header.error().message);
  const std::size_t size = header->payload_bytes;
  if (size > payload_bytes_max) {
    if (is_tls_hello(header_bytes)) co_return self->closed(ErrorCode::kProtocol, kOneSideEncrypts);
    co_return self->closed(
        ErrorCode::kProtocol,
        fmt::format("a frame of {} bytes where at most {} are expected", size, payload_bytes_max));
  }
  // One deadline for the rest, so that a trickle of bytes does not extend it.
  if (deadline == FrameDeadline::kHeader) {
    self->arm(self->read_watch_, time_for(self->limits_, size), "a frame was incomplete");
  }
  Impl* const impl = self.get();
  FrameBudget::Share share(size > kFirstReadBytes ? impl->limits_.budget.get() : nullptr, [impl] {
    impl->close(
        "frames that have not come whole take too much memory, and this connection's is the "
        "largest");
  });
  Bytes payload;
  while (payload.size() < size) {
    const std::size_t have = payload.size();
    share.hold(std::min(size, std::max(kFirstReadBytes, 2 * have)));
    if (!impl->is_open()) co_return self->closed(ErrorCode::kIo, impl->close_reason());
    payload.resize(std::min(size, std::max(kFirstReadBytes, 2 * have)));
    const auto target = asio::buffer(payload.data() + have, payload.size() - have);
    const TransferOutcome got = co_await asio::async_read(self->stream_, target, kAsTuple);
    self->bytes_in_ += std::get<1>(got);
    if (std::get<0>(got)) co_return self->broken_off(std::get<0>(got), true);
  }
  if (self->limits_.pace_in) {
    self->limits_.pace_in->spend(kFrameHeaderBytes + size, monotonic_now());
  }
  const Result<void> verified = verify_frame(*header, payload);
  if (!verified) co_return self->closed(verified.error().code, verified.error().message);
  co_return std::move(payload);
}

// ---- Writing -----------------------------------------------------------------------------------

bool FramedSocket::Impl::send(SharedBytes payload, Lane lane) {
  if (!takes_frames()) return false;
  QueuedFrame frame{frame_header(*payload), std::move(payload)};
  if (bytes_waiting_ > 0 && bytes_waiting_ + frame.bytes() > limits_.send_queue_bytes_max) {
    close(fmt::format("the peer is too slow: {} bytes wait to be sent to it", bytes_waiting_));
    return false;
  }
  bytes_waiting_ += frame.bytes();
  waiting_.hold(bytes_waiting_);
  if (!is_open()) return false;
  queues_[static_cast<std::size_t>(lane)].push_back(std::move(frame));
  if (!is_write_due_) write_next();
  return true;
}

// Takes up to kFramesPerWriteMax urgent frames, or one ordered frame. The next choice is possible
// only when these have been sent.
void FramedSocket::Impl::take_frames() {
  auto& urgent = queues_[static_cast<std::size_t>(Lane::kUrgent)];
  auto& source = urgent.empty() ? queues_[static_cast<std::size_t>(Lane::kOrdered)] : urgent;
  const std::size_t frames_max = urgent.empty() ? 1 : kFramesPerWriteMax;
  while (!source.empty() && on_their_way_.size() < frames_max) {
    on_their_way_.push_back(std::move(source.front()));
    source.pop_front();
  }
}

void FramedSocket::Impl::write_next() {
  is_write_due_ = true;
  const Instant now = monotonic_now();
  if (limits_.pace_out && limits_.pace_out->ready() > now) {
    write_pause_.expires_after(limits_.pace_out->ready() - now);
    write_pause_.async_wait([self = shared_from_this()](const asio::error_code& error) {
      if (!error && self->is_open()) self->write_next();
    });
    return;
  }
  take_frames();
  std::vector<asio::const_buffer> buffers;
  std::size_t bytes = 0;
  for (const QueuedFrame& frame : on_their_way_) {
    buffers.push_back(asio::buffer(frame.header));
    buffers.push_back(asio::buffer(*frame.payload));
    bytes += frame.bytes();
  }
  if (limits_.pace_out) limits_.pace_out->spend(bytes, now);
  arm(write_watch_, time_for(limits_, bytes), "the peer did not take what was sent");
  asio::async_write(
      stream_, buffers,
      [self = shared_from_this()](const asio::error_code& error, std::size_t transferred) {
        self->written(error, transferred);
      });
}

void FramedSocket::Impl::written(const asio::error_code& error, std::size_t bytes) {
  bytes_out_ += bytes;
  disarm(write_watch_);
  if (error) return end_writing(error.message());
  for (const QueuedFrame& frame : on_their_way_) bytes_waiting_ -= frame.bytes();
  waiting_.hold(bytes_waiting_);
  on_their_way_.clear();
  is_write_due_ = false;
  if (has_unsent()) {
    write_next();
  } else {
    finish_if_written();
  }
  if (on_written_ && is_open()) on_written_();
}

// A peer that refused us may have sent the reason before it closed: reading continues to the end,
// which closes the socket.
void FramedSocket::Impl::end_writing(std::string reason) {
  if (!is_open()) return;
  if (has_shut_down_ || is_finishing_) return close({});
  is_write_broken_ = true;
  close_reason_ = std::move(reason);
  for (auto& queue : queues_) queue.clear();
  on_their_way_.clear();
  bytes_waiting_ = 0;
  waiting_.hold(0);
  is_write_due_ = false;
  arm(write_watch_, limits_.linger_max, "a broken connection was not read");
}

// ---- The handle --------------------------------------------------------------------------------

FramedSocket::FramedSocket(asio::ip::tcp::socket socket, const FramedSocketLimits& limits)
    : impl_(std::make_shared<Impl>(std::move(socket), limits)) {}

FramedSocket::~FramedSocket() {
  // A finishing connection lives on, within its deadlines, until the peer has received everything.
  if (!impl_->is_finishing()) impl_->close("closed");
}

asio::awaitable<Result<std::uint8_t>> FramedSocket::first_byte(Millis time_max) {
  return Impl::first_byte(impl_, time_max);
}

Error FramedSocket::refuse_plain_text() {
  return impl_->refuse_plain_text();
}

asio::awaitable<Result<KeyId>> FramedSocket::encrypt_as_server(TlsContext& tls, Millis time_max) {
  return Impl::encrypt(impl_, tls, std::nullopt, time_max);
}

asio::awaitable<Result<KeyId>> FramedSocket::encrypt_as_client(TlsContext& tls, KeyId master,
                                                               Millis time_max) {
  return Impl::encrypt(impl_, tls, master, time_max);
}

asio::awaitable<Result<Bytes>> FramedSocket::read_frame(Millis time_max,
                                                        std::size_t payload_bytes_max,
                                                        FrameDeadline deadline) {
  return Impl::read_frame(impl_, time_max, payload_bytes_max, deadline);
}

bool FramedSocket::send(SharedBytes payload, Lane lane) {
  return impl_->send(std::move(payload), lane);
}

bool FramedSocket::send(Bytes payload, Lane lane) {
  return impl_->send(std::make_shared<const Bytes>(std::move(payload)), lane);
}

void FramedSocket::finish(std::string reason) {
  impl_->finish(std::move(reason));
}

void FramedSocket::close(std::string reason) {
  impl_->close(std::move(reason));
}

bool FramedSocket::is_open() const {
  return impl_->is_open();
}

bool FramedSocket::takes_frames() const {
  return impl_->takes_frames();
}

const std::string& FramedSocket::close_reason() const {
  return impl_->close_reason();
}

const std::string& FramedSocket::peer() const {
  return impl_->peer();
}

std::uint64_t FramedSocket::bytes_in() const {
  return impl_->bytes_in();
}

std::uint64_t FramedSocket::bytes_out() const {
  return impl_->bytes_out();
}

std::size_t FramedSocket::bytes_waiting() const {
  return impl_->bytes_waiting();
}

void FramedSocket::let_wait(std::size_t more_bytes) {
  impl_->let_wait(more_bytes);
}

void FramedSocket::on_written(std::function<void()> handler) {
  impl_->on_written(std::move(handler));
}

// From plain text to TLS: the handshake, and errors for peers that do not encrypt.

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

// Reads bytes that have come first: closing with unread bytes would reset the connection, and the
// peer would not receive the reason.
Error FramedSocket::Impl::refuse_plain_text() {
  asio::error_code error;
  std::array<std::uint8_t, 4096> thrown_away{};
  if (socket_.available(error) > 0) socket_.receive(asio::buffer(thrown_away), 0, error);
  socket_.send(asio::buffer(kTlsRefusal), 0, error);  // fits an empty send queue
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
        fmt::format("WRONG MASTER: the program at {} has the key {} instead of {}. Somebody may "
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
        "the other side ended the connection instead of encrypting it: a master does so when it "
        "was started with --insecure (then start this end with --insecure too), or when it has "
        "no time");
  }
  if (error == asio::error::operation_aborted) return broken_off(error, false);
  return closed(ErrorCode::kProtocol, "the TLS handshake failed: " + error.message());
}

}  // namespace gleaner

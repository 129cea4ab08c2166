// Implementation of FramedSocket, shared by its sources: reading, writing and encryption.
#pragma once

#include <array>
#include <asio/async_result.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/ssl/stream.hpp>
#include <asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/net/frame.hpp"
#include "common/net/framed_socket.hpp"
#include "common/net/tls_context.hpp"
#include "common/os/sockets.hpp"
#include "common/result.hpp"

namespace gleaner {

// A TCP connection, encrypted after a handshake. Has only the operations that Asio's algorithms
// need of a stream.
class Stream {
 public:
  using Tls = asio::ssl::stream<asio::ip::tcp::socket&>;
  using executor_type = asio::ip::tcp::socket::executor_type;

  explicit Stream(asio::ip::tcp::socket socket) : socket_(std::move(socket)) {}

  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  executor_type get_executor() { return socket_.get_executor(); }

  asio::ip::tcp::socket& socket() { return socket_; }

  [[nodiscard]] const asio::ip::tcp::socket& socket() const { return socket_; }

  // All later reads and writes go through the returned stream.
  Tls& encrypt(asio::ssl::context& context) {
    tls_ = std::make_unique<Tls>(socket_, context);
    return *tls_;
  }

  template <typename Buffers, typename Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return asio::async_initiate<Token, void(asio::error_code, std::size_t)>(
        [this](auto handler, const auto& target) {
          if (tls_) {
            tls_->async_read_some(target, std::move(handler));
          } else {
            socket_.async_read_some(target, std::move(handler));
          }
        },
        token, buffers);
  }

  template <typename Buffers, typename Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return asio::async_initiate<Token, void(asio::error_code, std::size_t)>(
        [this](auto handler, const auto& source) {
          if (tls_) {
            tls_->async_write_some(source, std::move(handler));
          } else {
            socket_.async_write_some(source, std::move(handler));
          }
        },
        token, buffers);
  }

 private:
  asio::ip::tcp::socket socket_;
  std::unique_ptr<Tls> tls_;
};

// A fatal TLS alert, with which a TLS server refuses a message. It is one byte shorter than a
// frame's header, so it is never taken for a header.
inline constexpr std::array<std::uint8_t, 7> kTlsRefusal{21, 3, 3, 0, 2, 2, 40};

inline constexpr const char* kOneSideEncrypts =
    "the other side encrypts (TLS) and this one was started with --insecure: start both with it, "
    "or "
    "neither";

class FramedSocket::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::ip::tcp::socket socket, const FramedSocketLimits& limits);

  static asio::awaitable<Result<std::uint8_t>> first_byte(std::shared_ptr<Impl> self,
                                                          Millis time_max);
  Error refuse_plain_text();
  static asio::awaitable<Result<KeyId>> encrypt(std::shared_ptr<Impl> self, TlsContext& tls,
                                                std::optional<KeyId> master, Millis time_max);
  static asio::awaitable<Result<Bytes>> read_frame(std::shared_ptr<Impl> self, Millis time_max,
                                                   std::size_t payload_bytes_max,
                                                   FrameDeadline deadline);
  bool send(SharedBytes payload, Lane lane);
  void finish(std::string reason);
  void close(std::string reason);

  void on_written(std::function<void()> handler) { on_written_ = std::move(handler); }

  [[nodiscard]] bool is_open() const { return socket_.is_open(); }

  [[nodiscard]] bool takes_frames() const {
    return is_open() && !is_finishing_ && !is_write_broken_;
  }

  [[nodiscard]] bool is_finishing() const { return is_finishing_; }

  [[nodiscard]] const std::string& close_reason() const { return close_reason_; }

  [[nodiscard]] const std::string& peer() const { return peer_; }

  [[nodiscard]] std::uint64_t bytes_in() const { return bytes_in_; }

  [[nodiscard]] std::uint64_t bytes_out() const { return bytes_out_; }

  [[nodiscard]] std::size_t bytes_waiting() const { return bytes_waiting_; }

  void let_wait(std::size_t more_bytes) { limits_.send_queue_bytes_max += more_bytes; }

 private:
  // Closes the socket unless disarmed in time. `turn` distinguishes a live expiry from an expiry
  // that was queued before the watch was disarmed.
  struct Watch {
    explicit Watch(const asio::any_io_executor& executor) : timer(executor) {}

    asio::steady_timer timer;
    std::uint64_t turn = 0;
  };

  struct QueuedFrame {
    std::array<std::uint8_t, kFrameHeaderBytes> header;
    SharedBytes payload;

    [[nodiscard]] std::size_t bytes() const { return header.size() + payload->size(); }
  };

  // Marks a read in progress, and ends the mark even after an exception.
  struct ReadScope {
    explicit ReadScope(Impl& owner) : impl(owner) {
      GLEANER_CHECK(!impl.is_reading_);
      impl.is_reading_ = true;
    }

    ~ReadScope() {
      impl.is_reading_ = false;
      disarm(impl.read_watch_);
    }

    ReadScope(const ReadScope&) = delete;
    ReadScope& operator=(const ReadScope&) = delete;

    Impl& impl;
  };

  static asio::awaitable<Result<Bytes>> read_parts(std::shared_ptr<Impl> self, Millis time_max,
                                                   std::size_t payload_bytes_max,
                                                   FrameDeadline deadline);
  void arm(Watch& watch, Millis time_max, const char* what_is_late);
  static void disarm(Watch& watch);
  Error closed(ErrorCode code, std::string reason);
  Error broken_off(const asio::error_code& error, bool is_within_frame);
  Error handshake_failed(const asio::error_code& error, bool is_client);
  void write_next();
  void take_frames();

  [[nodiscard]] bool has_unsent() const { return !queues_[0].empty() || !queues_[1].empty(); }

  void written(const asio::error_code& error, std::size_t bytes);
  void end_writing(std::string reason);
  void finish_if_written();
  void discard_if_finished();

  FramedSocketLimits limits_;
  Stream stream_;
  asio::ip::tcp::socket& socket_;  // of the stream
  PeerKey peer_key_;
  std::string peer_;
  std::string close_reason_;
  Watch read_watch_;
  Watch write_watch_;
  std::function<void()> on_written_;
  asio::steady_timer read_pause_;
  asio::steady_timer write_pause_;
  FrameBudget::Share waiting_;                     // of the send budget
  std::array<std::deque<QueuedFrame>, 2> queues_;  // by Lane
  std::vector<QueuedFrame> on_their_way_;
  bool is_write_due_ = false;  // frames are on their way, or wait for the pacer
  std::size_t bytes_waiting_ = 0;
  std::uint64_t bytes_in_ = 0;
  std::uint64_t bytes_out_ = 0;
  bool is_reading_ = false;
  bool is_finishing_ = false;
  bool is_write_broken_ = false;
  bool is_discarding_ = false;
  bool has_shut_down_ = false;  // our side of the connection
  std::array<std::uint8_t, 1024> discarded_{};
};

}  // namespace gleaner

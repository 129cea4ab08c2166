// A TCP connection that carries frames, in plain text or encrypted. Everything happens on the
// socket's executor, one thread.
//
// Invariants: every wait has a deadline; what is queued for sending is bounded; once closed a
// socket stays closed and remembers the first reason. Sizes a peer claims are checked before
// memory is taken, and memory grows no faster than twice what has arrived.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/ip/tcp.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/access/standing.hpp"
#include "common/bytes.hpp"
#include "common/lane.hpp"
#include "common/limits.hpp"
#include "common/net/frame.hpp"
#include "common/rates.hpp"
#include "common/result.hpp"
#include "common/time.hpp"

namespace gleaner {

class TlsContext;

struct FramedSocketLimits {
  // A peer that lets more than this wait is closed. A single frame may be larger.
  std::size_t send_queue_bytes_max = std::size_t{64} << 20;
  // A frame may take this long to be written or, once its header is here, to be read, plus the time
  // its size takes at `bytes_per_second_min`.
  Millis frame_time_max{30'000};
  std::size_t bytes_per_second_min = 16 * 1024;
  // How long a finished connection waits for the peer's end of it, and a broken one to be read.
  Millis linger_max{2'000};
  // Rates to stay below, perhaps together with other sockets; null: as fast as the connection is.
  // Less is read than comes, so that the peer's system slows down what it sends.
  std::shared_ptr<Pacer> pace_in;
  std::shared_ptr<Pacer> pace_out;
  // Bounds the memory of unfinished frames, of this socket and all others that share the budget.
  // Null: only the size of each single frame is bounded.
  std::shared_ptr<FrameBudget> budget;
  // Bounds the memory of frames that wait to be sent in the same way. Null: only
  // send_queue_bytes_max does.
  std::shared_ptr<FrameBudget> send_budget;
};

// The time of a read bounds one of these: the wait for a frame's header, after which the frame has
// the time that its size takes; or the whole frame.
enum class FrameDeadline : std::uint8_t { kHeader, kWhole };

class FramedSocket {
 public:
  // `socket` is connected. Switches Nagle's delay off, and lets the kernel find out whether the
  // peer still exists: by probes while nothing is sent, by unacknowledged bytes otherwise.
  FramedSocket(asio::ip::tcp::socket socket, const FramedSocketLimits& limits);
  // Closes, unless finish() was called: then what is queued still goes out, within the deadlines.
  ~FramedSocket();
  FramedSocket(const FramedSocket&) = delete;
  FramedSocket& operator=(const FramedSocket&) = delete;

  // The first byte that the peer sends, which stays to be read. As a read fails.
  asio::awaitable<Result<std::uint8_t>> first_byte(Millis time_max);

  // Closes, and tells a peer that sent plain text instead of a TLS handshake that we encrypt.
  Error refuse_plain_text();

  // Encrypts the connection, before any frame: as the one that was connected to, or as the one that
  // connected and wants `master` to be there. The peer's key, which the peer has proved to have.
  // Fails, and closes the socket: kIdentity for another key, before anything of ours is shown.
  // `tls` outlives the connection.
  asio::awaitable<Result<KeyId>> encrypt_as_server(TlsContext& tls, Millis time_max);
  asio::awaitable<Result<KeyId>> encrypt_as_client(TlsContext& tls, KeyId master, Millis time_max);

  // The next frame's payload. Fails, and closes the socket, when what `deadline` says is not here
  // after `time_max`, when it is larger than `payload_bytes_max`, damaged or too slow, and when
  // the connection ends; the error's message is close_reason(). One call at a time. The coroutine
  // may outlive the FramedSocket.
  asio::awaitable<Result<Bytes>> read_frame(Millis time_max,
                                            std::size_t payload_bytes_max = kFrameBytesMax,
                                            FrameDeadline deadline = FrameDeadline::kHeader);

  // Queues a frame and returns at once. False when the socket is closed or finishing, or closes
  // because the peer does not take what is sent. After a write that failed every frame is refused,
  // while reads still deliver what the peer said before it ended the connection. Requires
  // 0 < size <= kFrameBytesMax. The kernel is given little more than it can send at once, so that
  // urgent frames wait for little.
  bool send(SharedBytes payload, Lane lane = Lane::kOrdered);
  bool send(Bytes payload, Lane lane = Lane::kOrdered);

  // Sends what is queued, then closes in a way that lets the peer read all of it. Later sends and
  // reads are refused; a read under way may still deliver its frame.
  void finish(std::string reason);
  // Closes at once; what is queued is lost.
  void close(std::string reason);

  [[nodiscard]] bool is_open() const;
  // Open, and neither finishing nor broken, so that send() can succeed.
  [[nodiscard]] bool takes_frames() const;
  // Why the socket closed or finishes; empty before.
  [[nodiscard]] const std::string& close_reason() const;
  // ADDRESS:PORT of the other side.
  [[nodiscard]] const std::string& peer() const;

  // Counted with headers, as they pass.
  [[nodiscard]] std::uint64_t bytes_in() const;
  [[nodiscard]] std::uint64_t bytes_out() const;
  [[nodiscard]] std::size_t bytes_waiting() const;

  // Raises send_queue_bytes_max, but no budget that is shared.
  void let_wait(std::size_t more_bytes);

  // Called whenever frames have left, not from within send(), until the socket closes.
  void on_written(std::function<void()> handler);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;  // shared with the operations under way
};

}  // namespace gleaner

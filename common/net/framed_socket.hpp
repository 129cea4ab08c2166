// A TCP connection that carries frames, in plain text or encrypted. Everything runs on the socket's
// executor, one thread.
//
// Invariants: every wait has a deadline; the send queue is bounded; a closed socket stays closed
// and remembers the first reason. Sizes that a peer claims are checked before allocation, and
// memory grows to at most twice the bytes that have arrived.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/ip/tcp.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
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
  // A peer with more bytes waiting is closed. A single frame may be larger.
  std::size_t send_queue_bytes_max = std::size_t{64} << 20;
  // Time to write a frame, or to read the rest of a frame after its header, in addition to its size
  // at `bytes_per_second_min`.
  Millis frame_time_max{30'000};
  std::size_t bytes_per_second_min = 16 * 1024;
  // How long a finished connection waits for the peer to close, and a broken one to be read.
  Millis linger_max{2'000};
  // Rate limits, perhaps shared with other sockets; null: unlimited. Reading less than arrives
  // makes the peer's system send more slowly.
  std::shared_ptr<Pacer> pace_in;
  std::shared_ptr<Pacer> pace_out;
  // Limits the memory of incomplete frames of all sockets with this budget. Null: only the size of
  // each frame is limited.
  std::shared_ptr<FrameBudget> budget;
  // Limits the memory of frames that wait to be sent. Null: only send_queue_bytes_max applies.
  std::shared_ptr<FrameBudget> send_budget;
};

// The part of a frame that `time_max` of a read covers: its header (the rest has the time for its
// size), or the whole frame.
enum class FrameDeadline : std::uint8_t { kHeader, kWhole };

class FramedSocket {
 public:
  // `socket` is connected. Disables Nagle's delay, and lets the kernel detect a dead peer: by
  // probes while nothing is sent, by unacknowledged bytes otherwise.
  FramedSocket(asio::ip::tcp::socket socket, const FramedSocketLimits& limits);
  // Closes the socket. After finish() the queue is still sent, within the deadlines.
  ~FramedSocket();
  FramedSocket(const FramedSocket&) = delete;
  FramedSocket& operator=(const FramedSocket&) = delete;

  // The first byte from the peer, which read_frame() will read again. Fails like a read.
  asio::awaitable<Result<std::uint8_t>> first_byte(Millis time_max);

  // Closes, and tells a peer that sent plain text instead of a TLS handshake that this side
  // encrypts.
  Error refuse_plain_text();

  // Encrypts the connection before any frame, as the side that listens or the side that dials; the
  // latter requires the key `master`. Returns the peer's key, whose possession the peer has proved.
  // A failure closes the socket: kIdentity for another key, before this side has sent its own key.
  // `tls` outlives the connection.
  asio::awaitable<Result<KeyId>> encrypt_as_server(TlsContext& tls, Millis time_max);
  asio::awaitable<Result<KeyId>> encrypt_as_client(TlsContext& tls, KeyId master, Millis time_max);

  // The payload of the next frame. Closes the socket and fails when the part that `deadline` names
  // has not arrived after `time_max`; when the frame is larger than `payload_bytes_max`, damaged or
  // too slow; and when the connection ends. The error's message is close_reason(). One call at a
  // time. The coroutine may outlive the FramedSocket.
  asio::awaitable<Result<Bytes>> read_frame(Millis time_max,
                                            std::size_t payload_bytes_max = kFrameBytesMax,
                                            FrameDeadline deadline = FrameDeadline::kHeader);

  // Queues a frame and returns at once. False when the socket is closed or finishing, or closes
  // because the peer reads too slowly. After a failed write every frame is refused, but reads still
  // deliver the frames that the peer sent before. Requires 0 < size <= kFrameBytesMax. The kernel
  // gets little more than it can send at once, so that an urgent frame waits only briefly.
  bool send(SharedBytes payload, Lane lane = Lane::kOrdered);
  bool send(Bytes payload, Lane lane = Lane::kOrdered);

  // Sends the queue, then closes so that the peer can read all of it. Refuses later sends and
  // reads; a read in progress may still deliver its frame.
  void finish(std::string reason);
  // Closes at once and drops the queue.
  void close(std::string reason);

  [[nodiscard]] bool is_open() const;
  // Open, neither finishing nor broken: send() can succeed.
  [[nodiscard]] bool takes_frames() const;
  // Why the socket closed or is finishing; empty before.
  [[nodiscard]] const std::string& close_reason() const;
  // ADDRESS:PORT of the other side.
  [[nodiscard]] const std::string& peer() const;

  // Includes headers; counted as bytes pass.
  [[nodiscard]] std::uint64_t bytes_in() const;
  [[nodiscard]] std::uint64_t bytes_out() const;
  [[nodiscard]] std::size_t bytes_waiting() const;

  // Raises send_queue_bytes_max, but no shared budget.
  void let_wait(std::size_t more_bytes);

  // Called when frames have been sent, until the socket closes; never from within send().
  void on_written(std::function<void()> handler);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;  // shared with operations in progress
};

}  // namespace gleaner

// Frames to and from one peer, by whatever transport: TCP between machines, memory inside a
// process. I/O thread only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/access/key_id.hpp"
#include "common/bytes.hpp"
#include "common/lane.hpp"

namespace gleaner {

class Link {
 public:
  struct Handler {
    // A whole, verified payload, and its size on the wire with framing.
    std::function<void(Bytes payload, std::size_t wire_bytes)> on_frame;
    // Once, and nothing afterwards; not after the link's owner called abandon().
    std::function<void(std::string reason)> on_closed;
    // Some of what was queued has left. May be empty.
    std::function<void()> on_sent{};
  };

  virtual ~Link() = default;

  // Starts delivering. Handlers are never called from within send(), close() or start().
  virtual void start(Handler handler) = 0;
  // Queues a payload and returns its size on the wire. A peer that does not read makes the queue
  // overflow its bound: the link then closes by itself and says so through on_closed.
  virtual std::size_t send(Bytes payload, Lane lane) = 0;
  // Bytes that are queued and has not left.
  [[nodiscard]] virtual std::size_t bytes_waiting() const = 0;
  // While it is off nothing is delivered, and the peer cannot send without end. On at first.
  virtual void set_listening(bool is_on) = 0;
  // Closes when everything queued has left, or after a deadline; on_closed follows.
  virtual void close() = 0;
  // Forgets the handlers and closes at once.
  virtual void abandon() = 0;
};

// Who has introduced itself: the link's first frame is the introduction, which has arrived.
struct Arrival {
  std::shared_ptr<Link> link;
  std::string peer;          // ADDRESS:PORT
  std::optional<KeyId> key;  // which it has proved to have; none in plain text
};

}  // namespace gleaner

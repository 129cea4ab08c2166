// One end of a simulated connection, as the shells know links.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "common/net/link.hpp"
#include "tests/sim/network/network.hpp"

namespace gleaner::sim {

class SimLink : public Link, public std::enable_shared_from_this<SimLink> {
 public:
  // Bytes that a payload is on the wire.
  using SizeOf = std::function<std::size_t(const Bytes&)>;

  // Its connection is not open yet.
  SimLink(Network& network, End end, SizeOf size_of)
      : network_(network), end_(end), size_of_(std::move(size_of)) {}

  // What the network is to tell of the connection, and which one it is.
  [[nodiscard]] Network::Hearing hearing() {
    return {[self = shared_from_this()](Packet packet) {
              const auto on_frame = self->handler_.on_frame;  // a copy: it may abandon the link
              if (on_frame) on_frame(std::move(packet.bytes), packet.wire_bytes);
            },
            [self = shared_from_this()] {
              const auto on_closed = self->handler_.on_closed;
              if (on_closed) on_closed("the connection broke");
            }};
  }

  void join(ConnectionId connection) { connection_ = connection; }

  void start(Handler handler) override { handler_ = std::move(handler); }

  std::size_t send(Bytes payload, Lane lane) override {
    const std::size_t wire_bytes = size_of_(payload);
    network_.send(connection_, end_, {std::move(payload), wire_bytes, lane});
    return wire_bytes;
  }

  [[nodiscard]] std::size_t bytes_waiting() const override {
    return network_.queued_bytes(connection_, end_);
  }

  void set_listening(bool) override {}

  void close() override { network_.close(connection_, end_); }

  void abandon() override {
    handler_ = {};
    network_.abandon(connection_, end_, true);
  }

 private:
  Network& network_;
  const End end_;
  const SizeOf size_of_;
  ConnectionId connection_ = 0;
  Handler handler_;
};

}  // namespace gleaner::sim

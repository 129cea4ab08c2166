// A `Link` over one end of a simulated connection.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "common/net/shell_interfaces.hpp"
#include "tests/sim/network/network.hpp"

namespace gleaner::sim {

class SimLink : public Link, public std::enable_shared_from_this<SimLink> {
 public:
  // Makes the packet of a payload; none where the payload is withheld.
  using Pack = std::function<std::optional<Packet>(Bytes payload, Lane lane)>;
  // Calls the function now, or when the process at this end goes on.
  using Pass = std::function<void(std::function<void()>)>;

  // The connection is not open yet.
  SimLink(Network& network, End end, Pack pack, Pass pass)
      : network_(network), end_(end), pack_(std::move(pack)), pass_(std::move(pass)) {}

  // The link's callbacks for the network.
  [[nodiscard]] Network::Hearing hearing() {
    return {[self = shared_from_this()](Packet packet) { self->hear(std::move(packet)); },
            [self = shared_from_this()] { self->hear(std::nullopt); },
            [self = shared_from_this()] {
              ++self->arrived_;
              self->pass_([self] {
                const auto on_sent = self->handler_.on_sent;  // a copy: it may abandon the link
                if (on_sent) on_sent();
              });
            }};
  }

  void join(ConnectionId connection) { connection_ = connection; }

  void start(Handler handler) override { handler_ = std::move(handler); }

  std::size_t send(Bytes payload, Lane lane) override {
    std::optional<Packet> packet = pack_(std::move(payload), lane);
    if (!packet) return 0;
    const std::size_t wire_bytes = packet->wire_bytes;
    network_.send(connection_, end_, std::move(*packet));
    watch();
    return wire_bytes;
  }

  [[nodiscard]] std::size_t bytes_waiting() const override {
    return network_.queued_bytes(connection_, end_);
  }

  void set_listening(bool is_on) override {
    if (is_on == std::exchange(is_listening_, is_on) || !is_on || unheard_.empty()) return;
    network_.clock().after(Micros(0), [self = shared_from_this()] { self->deliver(); });
  }

  void close() override { network_.close(connection_, end_); }

  void abandon() override { abandon(true); }

  // See Network::abandon.
  void abandon(bool is_told) {
    handler_ = {};
    if (!std::exchange(is_abandoned_, true)) network_.abandon(connection_, end_, is_told);
  }

 private:
  // The deadline of a socket's writes: without an arrival for that time the connection has broken.
  static constexpr Millis kWriteDeadline{5'000};

  void watch() {
    if (std::exchange(is_watched_, true)) return;
    network_.clock().after(kWriteDeadline, [self = shared_from_this(), arrived = arrived_] {
      self->is_watched_ = false;
      if (self->is_abandoned_ || self->bytes_waiting() == 0) return;
      if (self->arrived_ != arrived) return self->watch();
      self->network_.log().mark("branch.write_deadline");
      self->network_.abandon(self->connection_, self->end_, false);
      self->hear(std::nullopt);
    });
  }

  // None means the end; unread packets are lost.
  void hear(std::optional<Packet> packet) {
    if (!is_listening_) network_.log().mark("branch.not_listening");
    if (!packet && !std::exchange(is_listening_, true)) unheard_.clear();
    unheard_.push_back(std::move(packet));
    deliver();
  }

  void deliver() {
    while (is_listening_ && !unheard_.empty()) {
      std::optional<Packet> first = std::move(unheard_.front());
      unheard_.pop_front();
      pass_([self = shared_from_this(), first = std::move(first)] {
        const Handler handler = self->handler_;
        if (first && handler.on_frame) handler.on_frame(first->bytes, first->wire_bytes);
        if (!first && handler.on_closed) handler.on_closed("the connection broke");
      });
    }
  }

  Network& network_;
  const End end_;
  const Pack pack_;
  const Pass pass_;
  ConnectionId connection_ = 0;
  Handler handler_;
  std::deque<std::optional<Packet>> unheard_;
  bool is_listening_ = true;
  bool is_abandoned_ = false;
  std::uint64_t arrived_ = 0;  // packets of this end
  bool is_watched_ = false;
};

}  // namespace gleaner::sim

// The simulated network: connections between the master and its volunteers, with latency, bandwidth
// and faults. A connection delivers whole packets, as TCP with frames does. When a connection
// breaks, packets under way are lost, half-sent packets too. Packets of one lane arrive in order;
// an urgent packet may overtake ordered packets, never the other way round.
//
// Bandwidth: all connections share the master's link in turns of 64 KiB, as under TCP; each
// volunteer has its own link.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "common/bytes.hpp"
#include "common/counter_random.hpp"
#include "common/net/shell_interfaces.hpp"
#include "tests/sim/network/sim_clock.hpp"
#include "tests/sim/network/sim_log.hpp"

namespace gleaner::sim {

enum class End : std::uint8_t { kMaster = 0, kVolunteer = 1 };

constexpr End other_end(End end) {
  return end == End::kMaster ? End::kVolunteer : End::kMaster;
}

using ConnectionId = std::uint64_t;

// Bytes per second; 0: no limit.
struct LinkShape {
  Micros latency_min{1'000};
  Micros latency_max{20'000};
  std::uint64_t bytes_per_second = 0;
};

struct Packet {
  Bytes bytes;
  std::size_t wire_bytes = 0;
  Lane lane = Lane::kOrdered;
};

class Network {
 public:
  // Callbacks of an end of a connection. They stay after the process is gone, and must check that
  // themselves.
  struct Hearing {
    std::function<void(Packet)> on_packet;
    std::function<void()> on_closed;
    // A packet from this end has arrived. May be empty.
    std::function<void()> on_sent{};
  };

  // A sender with more than `queue_bytes_max` waiting ends the connection, as a framed socket does.
  // `master_bytes_per_second` is the rate of the master's link, in each direction.
  Network(SimClock& clock, Rng& random, SimLog& log, std::size_t queue_bytes_max,
          std::uint64_t master_bytes_per_second);

  // Opens a connection at both ends. stall() finds it by `volunteer`.
  ConnectionId open(std::size_t volunteer, const LinkShape& link, Hearing master,
                    Hearing volunteer_end);
  void send(ConnectionId id, End from, Packet packet);
  // When all earlier packets have arrived, the other end gets on_closed, and then this end.
  void close(ConnectionId id, End by);
  // The process at this end is gone. With `is_told` its kernel still delivers sent packets and
  // closes the connection; otherwise the machine is gone, and the other end learns nothing.
  void abandon(ConnectionId id, End by, bool is_told);
  // Packets under way are lost. Each end that is told gets on_closed; the other end learns nothing.
  void cut(ConnectionId id, bool tell_master, bool tell_volunteer);

  // Nothing arrives in this direction before `until`; nothing is lost.
  void stall(std::size_t volunteer, End towards, Instant until);
  [[nodiscard]] Instant stalled_until(std::size_t volunteer) const;

  // Connections that both ends still hold.
  [[nodiscard]] std::vector<ConnectionId> open_connections() const;
  // Connections whose end the process at this end has not seen.
  [[nodiscard]] std::vector<ConnectionId> attached(End end) const;
  [[nodiscard]] std::size_t queued_bytes(ConnectionId id, End from) const;

  // The longest queue of the master on a connection so far.
  [[nodiscard]] std::size_t queued_bytes_most() const { return queued_bytes_most_; }

  [[nodiscard]] Micros latency(const LinkShape& link);

  [[nodiscard]] SimClock& clock() const { return clock_; }

  [[nodiscard]] SimLog& log() const { return log_; }

 private:
  struct Item {
    Packet packet;
    bool is_end = false;             // the sender's close, no packet
    std::size_t bytes_left = 0;      // not yet through the sender's link
    std::optional<Instant> arrives;  // set once all bytes are on their way
  };

  struct Queue {
    std::deque<Item> items;
    Instant link_free{};  // of the volunteer's link in this direction and lane
    Instant last_arrival{};
  };

  struct Flow {
    std::array<Queue, 2> queues;  // by Lane
    std::size_t queued_bytes = 0;
    bool has_ended = false;   // the sender has closed
    bool is_in_turn = false;  // waits for its turn on the master's link
  };

  struct Connection {
    std::size_t volunteer = 0;
    LinkShape link;
    std::array<Hearing, 2> hearing;               // by End
    std::array<bool, 2> is_attached{true, true};  // the process at this end is alive
    std::array<Flow, 2> flows;                    // by the sending End
    bool is_broken = false;                       // no packet arrives any more
  };

  Connection& at(ConnectionId id) { return connections_.at(id); }

  static Queue& queue_of(Flow& flow, Lane lane);
  // The lane that uses the sender's link next, if any item waits.
  static std::optional<Lane> waiting_lane(const Flow& flow);
  // The time at which the sender's link has passed `bytes` more.
  static Instant pass_link(Connection& connection, Flow& flow, Lane lane, std::size_t bytes,
                           Instant now);
  void start_item(ConnectionId id, End from, Lane lane);
  void take_turn();
  void on_its_way(ConnectionId id, End from, Lane lane, Instant through);
  void arrive(ConnectionId id, End from, Lane lane);
  void lose_everything(Connection& connection);
  void tell(ConnectionId id, End end);
  void forget_if_over(ConnectionId id);

  SimClock& clock_;
  Rng& random_;
  SimLog& log_;
  const std::size_t queue_bytes_max_;
  const std::uint64_t master_rate_;
  std::map<ConnectionId, Connection> connections_;
  ConnectionId last_ = 0;
  std::deque<ConnectionId> turns_;  // the master's flows that wait for its link
  bool is_link_busy_ = false;
  Instant master_in_free_{};  // of the master's link, towards the master
  std::map<std::size_t, std::array<Instant, 2>> stalls_;  // by volunteer, by receiving End
  std::size_t queued_bytes_most_ = 0;
};

}  // namespace gleaner::sim

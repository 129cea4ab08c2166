// The simulated network: connections between the master and its volunteers, with latency,
// bandwidth, and everything that breaks them. A connection delivers packets whole, as TCP with
// frames does, until it breaks; what is under way then is lost, a packet of which half has been
// sent too. Packets of one lane arrive in the order of their sending; an urgent one may overtake
// ordered ones, never the other way round.
//
// Bandwidth: the master's own link is shared by all connections, in turns of 64 KiB, as TCP shares
// it; each volunteer's link is its own.
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

// Bytes a second; 0: as many as one likes.
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
  // Functions through which an end of a connection hears. A process that is gone leaves its hearing
  // behind: the functions must see for themselves that nobody is there.
  struct Hearing {
    std::function<void(Packet)> on_packet;
    std::function<void()> on_closed;
    // Something that this end sent has arrived. May be empty.
    std::function<void()> on_sent{};
  };

  // `queue_bytes_max`: a sender with more than this waiting ends the connection, as a framed socket
  // does. `master_bytes_per_second`: of the master's link, in each direction.
  Network(SimClock& clock, Rng& random, SimLog& log, std::size_t queue_bytes_max,
          std::uint64_t master_bytes_per_second);

  // A connection that is established on both ends now. `volunteer` is what stalls go by.
  ConnectionId open(std::size_t volunteer, const LinkShape& link, Hearing master,
                    Hearing volunteer_end);
  void send(ConnectionId id, End from, Packet packet);
  // After everything sent before has arrived the other end hears on_closed, and then this end.
  void close(ConnectionId id, End by);
  // The process at this end is gone. `is_told`: its kernel still delivers what was sent and tells
  // the other end; otherwise the machine is gone and nobody says anything.
  void abandon(ConnectionId id, End by, bool is_told);
  // Packets under way are lost. Each end that is told hears on_closed; one that is not learns
  // nothing.
  void cut(ConnectionId id, bool tell_master, bool tell_volunteer);

  // Nothing arrives in this direction before `until`; nothing is lost.
  void stall(std::size_t volunteer, End towards, Instant until);
  [[nodiscard]] Instant stalled_until(std::size_t volunteer) const;

  // Connections that no end has given up.
  [[nodiscard]] std::vector<ConnectionId> open_connections() const;
  // Connections that the process at this end has not seen the end of.
  [[nodiscard]] std::vector<ConnectionId> attached(End end) const;
  [[nodiscard]] std::size_t queued_bytes(ConnectionId id, End from) const;

  // Largest that the master ever had waiting on a connection.
  [[nodiscard]] std::size_t queued_bytes_most() const { return queued_bytes_most_; }

  [[nodiscard]] Micros latency(const LinkShape& link);

  [[nodiscard]] SimClock& clock() const { return clock_; }

  [[nodiscard]] SimLog& log() const { return log_; }

 private:
  struct Item {
    Packet packet;
    bool is_end = false;             // no packet, the sender closed
    std::size_t bytes_left = 0;      // not yet through the sender's link
    std::optional<Instant> arrives;  // once all bytes are on their way
  };

  struct Queue {
    std::deque<Item> items;
    Instant link_free{};  // of the volunteer's own link in this direction, for this lane
    Instant last_arrival{};
  };

  struct Flow {
    std::array<Queue, 2> queues;  // by Lane
    std::size_t queued_bytes = 0;
    bool has_ended = false;   // the sender sends no more
    bool is_in_turn = false;  // waits for its turn on the master's link
  };

  struct Connection {
    std::size_t volunteer = 0;
    LinkShape link;
    std::array<Hearing, 2> hearing;               // by End
    std::array<bool, 2> is_attached{true, true};  // somebody at this end still listens
    std::array<Flow, 2> flows;                    // by the sending End
    bool is_broken = false;                       // nothing arrives any more
  };

  Connection& at(ConnectionId id) { return connections_.at(id); }

  static Queue& queue_of(Flow& flow, Lane lane);
  // The lane whose next item is to use the sender's link, if one waits for it.
  static std::optional<Lane> waiting_lane(const Flow& flow);
  // When the sender's own link has passed `bytes` more.
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
  std::deque<ConnectionId> turns_;  // flows from the master that wait for its link
  bool is_link_busy_ = false;
  Instant master_in_free_{};                              // of the master's link towards it
  std::map<std::size_t, std::array<Instant, 2>> stalls_;  // by volunteer, by receiving End
  std::size_t queued_bytes_most_ = 0;
};

}  // namespace gleaner::sim

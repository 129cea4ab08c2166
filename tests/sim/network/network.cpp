#include "tests/sim/network/network.hpp"

#include <algorithm>
#include <utility>

namespace gleaner::sim {
namespace {

constexpr std::size_t kTurnBytes = std::size_t{64} << 10;

std::size_t index_of(End end) {
  return static_cast<std::size_t>(end);
}

Micros time_of(std::size_t bytes, std::uint64_t bytes_per_second) {
  if (bytes_per_second == 0) return Micros(0);
  return Micros(static_cast<std::int64_t>(bytes * 1'000'000 / bytes_per_second));
}

}  // namespace

Network::Network(SimClock& clock, Rng& random, SimLog& log, std::size_t queue_bytes_max,
                 std::uint64_t master_bytes_per_second)
    : clock_(clock),
      random_(random),
      log_(log),
      queue_bytes_max_(queue_bytes_max),
      master_rate_(master_bytes_per_second) {}

Micros Network::latency(const LinkShape& link) {
  const auto spread = static_cast<std::uint64_t>((link.latency_max - link.latency_min).count());
  return link.latency_min + Micros(static_cast<std::int64_t>(random_.next_below(spread + 1)));
}

ConnectionId Network::open(std::size_t volunteer, const LinkShape& link, Hearing master,
                           Hearing volunteer_end) {
  Connection connection;
  connection.volunteer = volunteer;
  connection.link = link;
  connection.hearing = {std::move(master), std::move(volunteer_end)};
  for (Flow& flow : connection.flows) {
    for (Queue& queue : flow.queues) queue.link_free = queue.last_arrival = clock_.now();
  }
  connections_.emplace(++last_, std::move(connection));
  return last_;
}

// ---- Sending -----------------------------------------------------------------------------------

void Network::send(ConnectionId id, End from, Packet packet) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  Flow& flow = connection.flows[index_of(from)];
  if (flow.has_ended || !connection.is_attached[index_of(from)]) return;
  // A broken connection that this end was not told of takes bytes as if it were whole.
  // Volunteers begin no work while too much waits; the master lets go who does not read.
  const bool is_full = from == End::kMaster && flow.queued_bytes > 0 &&
                       flow.queued_bytes + packet.wire_bytes > queue_bytes_max_;
  flow.queued_bytes += packet.wire_bytes;
  if (from == End::kMaster) queued_bytes_most_ = std::max(queued_bytes_most_, flow.queued_bytes);
  if (is_full) {
    log_.mark("network.queue_full");
    cut(id, true, true);
    return;
  }
  if (connection.is_broken) return;
  Item item;
  item.bytes_left = packet.wire_bytes;
  const Lane lane = packet.lane;
  item.packet = std::move(packet);
  queue_of(flow, lane).items.push_back(std::move(item));
  start_item(id, from, lane);
}

void Network::close(ConnectionId id, End by) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  Flow& flow = connection.flows[index_of(by)];
  if (flow.has_ended || !connection.is_attached[index_of(by)]) return;
  flow.has_ended = true;
  if (connection.is_broken) return;
  Item item;
  item.is_end = true;
  queue_of(flow, Lane::kOrdered).items.push_back(std::move(item));
  start_item(id, by, Lane::kOrdered);
}

Network::Queue& Network::queue_of(Flow& flow, Lane lane) {
  return flow.queues[static_cast<std::size_t>(lane)];
}

std::optional<Lane> Network::waiting_lane(const Flow& flow) {
  const auto waits = [](const Item& item) { return !item.arrives; };
  std::optional<Lane> next;
  for (const Lane lane : {Lane::kOrdered, Lane::kUrgent}) {
    const Queue& queue = flow.queues[static_cast<std::size_t>(lane)];
    const auto first = std::find_if(queue.items.begin(), queue.items.end(), waits);
    if (first == queue.items.end()) continue;
    // A packet that has begun is finished first.
    if (first->bytes_left < first->packet.wire_bytes) return lane;
    next = lane;
  }
  return next;
}

// Ordered packets wait for all, urgent ones for urgent ones alone.
Instant Network::pass_link(Connection& connection, Flow& flow, Lane lane, std::size_t bytes,
                           Instant now) {
  const Micros time = time_of(bytes, connection.link.bytes_per_second);
  for (Queue& queue : flow.queues) queue.link_free = std::max(queue.link_free, now);
  if (lane == Lane::kUrgent) queue_of(flow, Lane::kUrgent).link_free += time;
  queue_of(flow, Lane::kOrdered).link_free += time;
  return queue_of(flow, lane).link_free;
}

void Network::start_item(ConnectionId id, End from, Lane lane) {
  Connection& connection = at(id);
  Flow& flow = connection.flows[index_of(from)];
  const std::size_t bytes = queue_of(flow, lane).items.back().packet.wire_bytes;
  if (master_rate_ == 0) {
    on_its_way(id, from, lane, pass_link(connection, flow, lane, bytes, clock_.now()));
    return;
  }
  if (from == End::kMaster) {
    if (!flow.is_in_turn) {
      flow.is_in_turn = true;
      turns_.push_back(id);
      take_turn();
    }
    return;
  }
  // The volunteer's own link first, then its place on the master's.
  clock_.at(pass_link(connection, flow, lane, bytes, clock_.now()), [this, id, from, lane, bytes] {
    if (!connections_.contains(id) || at(id).is_broken) return;
    master_in_free_ = std::max(master_in_free_, clock_.now()) + time_of(bytes, master_rate_);
    on_its_way(id, from, lane, master_in_free_);
  });
}

void Network::take_turn() {
  while (!is_link_busy_ && !turns_.empty()) {
    const ConnectionId id = turns_.front();
    turns_.pop_front();
    const auto found = connections_.find(id);
    if (found == connections_.end()) continue;
    Flow& flow = found->second.flows[index_of(End::kMaster)];
    flow.is_in_turn = false;
    const std::optional<Lane> lane = waiting_lane(flow);
    if (!lane) continue;
    auto& items = queue_of(flow, *lane).items;
    const auto waiting =
        std::find_if(items.begin(), items.end(), [](const Item& item) { return !item.arrives; });
    const std::size_t bytes = std::min(kTurnBytes, waiting->bytes_left);
    waiting->bytes_left -= bytes;
    const bool is_whole = waiting->bytes_left == 0;
    is_link_busy_ = true;
    clock_.after(time_of(bytes, master_rate_), [this, id, lane = *lane, bytes, is_whole] {
      is_link_busy_ = false;
      const auto still = connections_.find(id);
      if (still != connections_.end() && !still->second.is_broken) {
        Connection& connection = still->second;
        Flow& sender = connection.flows[index_of(End::kMaster)];
        const Instant through = pass_link(connection, sender, lane, bytes, clock_.now());
        if (is_whole) on_its_way(id, End::kMaster, lane, through);
        if (waiting_lane(sender) && !sender.is_in_turn) {
          sender.is_in_turn = true;
          turns_.push_back(id);
        }
      }
      take_turn();
    });
  }
}

void Network::on_its_way(ConnectionId id, End from, Lane lane, Instant through) {
  Connection& connection = at(id);
  Flow& flow = connection.flows[index_of(from)];
  Queue& queue = queue_of(flow, lane);
  const auto item = std::find_if(queue.items.begin(), queue.items.end(),
                                 [](const Item& i) { return !i.arrives; });
  if (item == queue.items.end()) return;
  Queue& ordered = queue_of(flow, Lane::kOrdered);
  if (lane == Lane::kUrgent && ordered.last_arrival > through) log_.mark("network.overtaken");
  queue.last_arrival = std::max(queue.last_arrival, through + latency(connection.link));
  // A packet sent after an urgent one does not arrive before it.
  ordered.last_arrival = std::max(ordered.last_arrival, queue.last_arrival);
  item->arrives = queue.last_arrival;
  clock_.at(queue.last_arrival, [this, id, from, lane] { arrive(id, from, lane); });
}

// ---- Arriving ----------------------------------------------------------------------------------

void Network::arrive(ConnectionId id, End from, Lane lane) {
  const auto found = connections_.find(id);
  if (found == connections_.end() || found->second.is_broken) return;
  Connection& connection = found->second;
  const End to = other_end(from);
  Flow& flow = connection.flows[index_of(from)];
  const auto is_due = [&](Lane which) {
    const std::deque<Item>& waiting = queue_of(flow, which).items;
    return !waiting.empty() && waiting.front().arrives && *waiting.front().arrives <= clock_.now();
  };
  if (!is_due(lane)) return;
  // A stall that was prolonged has mixed the lanes' turns.
  const bool is_late = lane == Lane::kOrdered && is_due(Lane::kUrgent) &&
                       *queue_of(flow, Lane::kUrgent).items.front().arrives <=
                           *queue_of(flow, lane).items.front().arrives;
  const Instant stalled = stalls_[connection.volunteer][index_of(to)];
  if (stalled > clock_.now()) {
    log_.mark("network.held_back");
    clock_.at(stalled, [this, id, from, lane] { arrive(id, from, lane); });
    return;
  }
  if (is_late) {
    arrive(id, from, Lane::kUrgent);
    arrive(id, from, lane);
    return;
  }
  std::deque<Item>& items = queue_of(flow, lane).items;
  Item item = std::move(items.front());
  items.pop_front();
  flow.queued_bytes -= item.packet.wire_bytes;
  if (item.is_end) {
    lose_everything(connection);
    tell(id, to);
    tell(id, from);
    return;
  }
  if (!connection.is_attached[index_of(to)]) return;
  clock_.note(item.packet.wire_bytes);
  const auto on_packet = connection.hearing[index_of(to)].on_packet;
  const auto on_sent = connection.hearing[index_of(from)].on_sent;
  const bool is_sender_there = connection.is_attached[index_of(from)];
  on_packet(std::move(item.packet));
  if (on_sent && is_sender_there) on_sent();
}

// ---- Breaking ----------------------------------------------------------------------------------

void Network::lose_everything(Connection& connection) {
  for (Flow& flow : connection.flows) {
    for (Queue& queue : flow.queues) {
      for (const Item& item : queue.items) {
        if (item.is_end) continue;
        log_.mark("network.packet_lost");
        const bool has_begun = item.bytes_left < item.packet.wire_bytes || item.arrives;
        if (has_begun && queue.link_free > clock_.now()) log_.mark("network.cut_inside_packet");
      }
      queue.items.clear();
    }
  }
  connection.is_broken = true;
}

void Network::abandon(ConnectionId id, End by, bool is_told) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  if (is_told) {
    close(id, by);
  } else {
    lose_everything(connection);
  }
  connection.is_attached[index_of(by)] = false;
  forget_if_over(id);
}

void Network::cut(ConnectionId id, bool tell_master, bool tell_volunteer) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  lose_everything(found->second);
  if (tell_master) tell(id, End::kMaster);
  if (tell_volunteer) tell(id, End::kVolunteer);
}

void Network::tell(ConnectionId id, End end) {
  const auto found = connections_.find(id);
  if (found == connections_.end() || !found->second.is_attached[index_of(end)]) return;
  clock_.after(latency(found->second.link), [this, id, end] {
    const auto still = connections_.find(id);
    if (still == connections_.end() || !still->second.is_attached[index_of(end)]) return;
    still->second.is_attached[index_of(end)] = false;
    const auto on_closed = still->second.hearing[index_of(end)].on_closed;
    forget_if_over(id);
    on_closed();
  });
}

void Network::forget_if_over(ConnectionId id) {
  const Connection& connection = at(id);
  if (!connection.is_attached[0] && !connection.is_attached[1]) connections_.erase(id);
}

void Network::stall(std::size_t volunteer, End towards, Instant until) {
  Instant& stalled = stalls_[volunteer][index_of(towards)];
  stalled = std::max(stalled, until);
}

Instant Network::stalled_until(std::size_t volunteer) const {
  const auto found = stalls_.find(volunteer);
  if (found == stalls_.end()) return Instant{};
  return std::max(found->second[0], found->second[1]);
}

std::vector<ConnectionId> Network::open_connections() const {
  std::vector<ConnectionId> open;
  for (const auto& [id, connection] : connections_) {
    if (!connection.is_broken) open.push_back(id);
  }
  return open;
}

std::vector<ConnectionId> Network::attached(End end) const {
  std::vector<ConnectionId> attached;
  for (const auto& [id, connection] : connections_) {
    if (connection.is_attached[index_of(end)]) attached.push_back(id);
  }
  return attached;
}

std::size_t Network::queued_bytes(ConnectionId id, End from) const {
  const auto found = connections_.find(id);
  return found == connections_.end() ? 0 : found->second.flows[index_of(from)].queued_bytes;
}

}  // namespace gleaner::sim

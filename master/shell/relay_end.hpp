// The master's end of a connection to a relay: the sessions of its channels, and the parts that
// cross the connection once for all of them. I/O thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/access/standing.hpp"
#include "common/net/shell_interfaces.hpp"
#include "master/core/events.hpp"
#include "schema/messages.hpp"
#include "schema/relay_parts.hpp"

namespace gleaner {

class RelayEnd {
 public:
  RelayEnd(std::shared_ptr<Link> link, std::string name, const Standing& standing)
      : link_(std::move(link)), name_(std::move(name)), standing_(standing) {}

  [[nodiscard]] Link& link() { return *link_; }

  [[nodiscard]] const std::string& name() const { return name_; }

  [[nodiscard]] const Standing& standing() const { return standing_; }

  // The address of a volunteer at `peer` behind the relay, for people.
  [[nodiscard]] std::string address_of(const std::string& peer) const {
    return peer + " behind " + name_;
  }

  // Queues a message to the relay itself and returns its size on the wire.
  std::size_t send(const Message& message);
  // Queues a message of a channel, after parts that the relay lacks. Returns the size with these
  // parts.
  std::size_t send(std::uint32_t channel, Message message);

  // False unless the number is higher than all earlier ones.
  bool open(std::uint32_t channel, SessionId session);

  // The channel is over: later messages of it are ignored. Earlier ones may still count.
  void close(std::uint32_t channel) { open_.erase(channel); }

  // The session of an open channel.
  [[nodiscard]] std::optional<SessionId> session_at(std::uint32_t channel) const;
  [[nodiscard]] std::vector<SessionId> sessions() const;
  // The sum with sessions in place of channels; nullopt if a channel never existed.
  [[nodiscard]] std::optional<RelaySummed> summed(RelayId id, RelaySum& sum,
                                                  std::size_t bytes) const;

 private:
  // Sends the part unless the relay has it, and returns its number.
  std::uint64_t share(const SharedBytes& part, std::size_t& wire_bytes);

  std::shared_ptr<Link> link_;
  const std::string name_;
  const Standing standing_;
  RelayParts parts_;
  std::map<std::uint32_t, SessionId> open_;
  std::map<std::uint32_t, SessionId> all_;  // all channels that ever were
};

}  // namespace gleaner

#include "master/shell/relay_end.hpp"

#include "schema/delivery.hpp"
#include "schema/wire/codec.hpp"

namespace gleaner {
namespace {

// A smaller part is not worth a message of its own.
constexpr std::size_t kPartBytesMin = 64;

// Bytes that may wait for each further volunteer: requested chunks and units.
constexpr std::size_t kBytesOfChannel = std::size_t{4} << 20;

const SharedBytes& nothing() {
  static const SharedBytes kNothing = std::make_shared<const Bytes>();
  return kNothing;
}

}  // namespace

std::size_t RelayEnd::send(const Message& message) {
  return link_->send(encode(message), lane_of(message));
}

std::uint64_t RelayEnd::share(const SharedBytes& part, std::size_t& wire_bytes) {
  if (const auto known = parts_.number_of(part)) return *known;
  const std::uint64_t number = parts_.add(part);
  wire_bytes += send(RelayPart{number, part});
  return number;
}

std::size_t RelayEnd::send(std::uint32_t channel, Message message) {
  std::size_t wire_bytes = 0;
  RelayFrame frame{channel, {}, {}};
  std::visit(
      [&]<typename Type>(Type& of_type) {
        if constexpr (kFactsOf<Type>.at_relay == AtRelay::kFill) {
          const std::vector<SharedBytes*> parts = parts_of(of_type);
          if ((*parts.front())->size() < kPartBytesMin) return;
          for (SharedBytes* const part : parts) {
            frame.parts.push_back(share(std::exchange(*part, nothing()), wire_bytes));
          }
        }
      },
      message);
  frame.payload = encode(message);
  return wire_bytes + link_->send(encode(std::move(frame)), lane_of(message));
}

bool RelayEnd::open(std::uint32_t channel, SessionId session) {
  if (!all_.empty() && channel <= all_.rbegin()->first) return false;
  all_.emplace(channel, session);
  open_.emplace(channel, session);
  link_->let_wait(kBytesOfChannel);
  return true;
}

std::optional<SessionId> RelayEnd::session_at(std::uint32_t channel) const {
  const auto found = open_.find(channel);
  return found == open_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<SessionId> RelayEnd::sessions() const {
  std::vector<SessionId> sessions;
  for (const auto& [channel, session] : open_) sessions.push_back(session);
  return sessions;
}

std::optional<RelaySummed> RelayEnd::summed(RelayId id, RelaySum& sum, std::size_t bytes) const {
  RelaySummed event;
  event.relay = id;
  event.number = sum.number;
  event.batch = sum.batch;
  event.gradient = std::move(sum.gradient);
  event.bytes = bytes;
  for (const RelayedUnit& unit : sum.units) {
    const auto session = all_.find(unit.channel);
    if (session == all_.end()) return std::nullopt;
    event.units.emplace_back(session->second, unit.unit);
  }
  event.sender = {SessionId{}, standing_.identity, standing_.invite, name_};
  return event;
}

}  // namespace gleaner

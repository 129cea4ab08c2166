// Messages between a master and a relay.
#include "schema/wire/wire.hpp"

namespace gleaner {

void write(const RelayHello& from, wire::RelayHello::Builder to) {
  to.setProtocolMin(from.protocol_min);
  to.setProtocolMax(from.protocol_max);
  to.setBuild(outgoing_text(from.build, kNameBytesMax));
  to.setName(outgoing_text(from.name, kNameBytesMax));
  to.setInvite(outgoing_text(from.invite, kInviteBytesMax));
}

RelayHello read(wire::RelayHello::Reader from) {
  RelayHello to;
  read_protocols(from, to);
  to.build = read_text("build", from.getBuild(), kNameBytesMax);
  to.name = read_text("name", from.getName(), kNameBytesMax);
  to.invite = read_text("invite", from.getInvite(), kInviteBytesMax);
  return to;
}

void write(const RelayOpen& from, wire::RelayOpen::Builder to) {
  to.setChannel(from.channel);
  to.setPeer(outgoing_text(from.peer, kNameBytesMax));
  to.setKeyHigh(from.key.high);
  to.setKeyLow(from.key.low);
}

RelayOpen read(wire::RelayOpen::Reader from) {
  return {from.getChannel(),
          read_text("peer", from.getPeer(), kNameBytesMax),
          {from.getKeyHigh(), from.getKeyLow()}};
}

void write(const RelayFrame& from, wire::RelayFrame::Builder to) {
  to.setChannel(from.channel);
  to.setPayload(data_of(from.payload));
  to.setParts(data_of(bytes_of(from.parts)));
}

RelayFrame read(wire::RelayFrame::Reader from) {
  const ByteView payload = view(from.getPayload());
  RelayFrame to{from.getChannel(), Bytes(payload.begin(), payload.end()),
                read_values<std::uint64_t>("parts", from.getParts())};
  if (to.parts.size() > kBatchesPerUnitMax) {
    malformed("parts", "{} entries, at most {}", to.parts.size(), kBatchesPerUnitMax);
  }
  return to;
}

void write(const RelayPart& from, wire::RelayPart::Builder to) {
  GLEANER_CHECK(from.bytes != nullptr);
  to.setNumber(from.number);
  to.setBytes(data_of(*from.bytes));
}

RelayPart read(wire::RelayPart::Reader from) {
  const ByteView bytes = view(from.getBytes());
  return {from.getNumber(), std::make_shared<const Bytes>(bytes.begin(), bytes.end())};
}

void write(const RelayClose& from, wire::RelayClose::Builder to) {
  to.setChannel(from.channel);
  to.setReason(outgoing_text(from.reason, kSentenceBytesMax));
}

RelayClose read(wire::RelayClose::Reader from) {
  return {from.getChannel(), read_text("reason", from.getReason(), kSentenceBytesMax)};
}

void write(const RelaySum& from, wire::RelaySum::Builder to) {
  std::vector<std::uint32_t> channels;
  std::vector<std::uint64_t> units;
  for (const RelayedUnit& unit : from.units) {
    channels.push_back(unit.channel);
    units.push_back(raw(unit.unit));
  }
  to.setNumber(from.number);
  to.setBatch(from.batch);
  to.setChannels(data_of(bytes_of(channels)));
  to.setUnits(data_of(bytes_of(units)));
  to.setGradient(data_of(from.gradient));
}

RelaySum read(wire::RelaySum::Reader from) {
  RelaySum to;
  to.number = from.getNumber();
  to.batch = from.getBatch();
  const auto channels = read_values<std::uint32_t>("channels", from.getChannels());
  const auto units = read_values<std::uint64_t>("units", from.getUnits());
  if (units.empty() || units.size() > kOutputShardsMax || units.size() != channels.size()) {
    malformed("units", "{} entries for {} channels, must be 1 to {}", units.size(), channels.size(),
              kOutputShardsMax);
  }
  for (std::size_t i = 0; i < units.size(); ++i) {
    to.units.push_back({channels[i], UnitId{units[i]}});
  }
  const ByteView gradient = view(from.getGradient());
  to.gradient.assign(gradient.begin(), gradient.end());
  return to;
}

void write(const RelaySplit& from, wire::RelaySplit::Builder to) {
  to.setNumber(from.number);
}

RelaySplit read(wire::RelaySplit::Reader from) {
  return {from.getNumber()};
}

}  // namespace gleaner

// AccessRequest and AccessAnswer: who may do what, as an administrator asks for it.
#include "schema/text.hpp"
#include "schema/wire/wire.hpp"

namespace gleaner {
namespace {

void write_invite(const InviteEntry& from, wire::InviteEntry::Builder to) {
  to.setId(outgoing_text(from.id, kNameBytesMax));
  to.setRole(static_cast<std::uint8_t>(from.role));
  to.setIsTrusted(from.is_trusted);
  to.setIsReusable(from.is_reusable);
  to.setState(outgoing_text(from.state, kNameBytesMax));
  to.setCreatedWall(from.created_wall);
  to.setExpiresWall(from.expires_wall);
  to.setAddress(outgoing_text(from.address, kSentenceBytesMax));
  to.setLabel(outgoing_text(from.label, kNameBytesMax));
}

InviteEntry read_invite(wire::InviteEntry::Reader from) {
  InviteEntry to;
  to.id = read_text("invites.id", from.getId(), kNameBytesMax);
  to.role = read_enum("invites.role", from.getRole(), Role::kAdmin);
  to.is_trusted = from.getIsTrusted();
  to.is_reusable = from.getIsReusable();
  to.state = read_text("invites.state", from.getState(), kNameBytesMax);
  to.created_wall = from.getCreatedWall();
  to.expires_wall = from.getExpiresWall();
  to.address = read_text("invites.address", from.getAddress(), kSentenceBytesMax);
  to.label = read_text("invites.label", from.getLabel(), kNameBytesMax);
  return to;
}

void write_peer(const PeerEntry& from, wire::PeerEntry::Builder to) {
  to.setId(outgoing_text(from.id, kNameBytesMax));
  to.setName(outgoing_text(from.name, kNameBytesMax));
  to.setPeer(outgoing_text(from.peer, kNameBytesMax));
  to.setInvite(outgoing_text(from.invite, kNameBytesMax));
  to.setIsHere(from.is_here);
  to.setIsTrusted(from.is_trusted);
  to.setIsBanned(from.is_banned);
  to.setReason(outgoing_text(from.reason, kNameBytesMax));
}

PeerEntry read_peer(wire::PeerEntry::Reader from) {
  PeerEntry to;
  to.id = read_text("peers.id", from.getId(), kNameBytesMax);
  to.name = read_text("peers.name", from.getName(), kNameBytesMax);
  to.peer = read_text("peers.peer", from.getPeer(), kNameBytesMax);
  to.invite = read_text("peers.invite", from.getInvite(), kNameBytesMax);
  to.is_here = from.getIsHere();
  to.is_trusted = from.getIsTrusted();
  to.is_banned = from.getIsBanned();
  to.reason = read_text("peers.reason", from.getReason(), kNameBytesMax);
  return to;
}

}  // namespace

void write(const AccessRequest& from, wire::AccessRequest::Builder to) {
  to.setProtocolMin(from.protocol_min);
  to.setProtocolMax(from.protocol_max);
  to.setBuild(outgoing_text(from.build, kNameBytesMax));
  to.setInvite(outgoing_text(from.invite, kInviteBytesMax));
  to.setVerb(static_cast<std::uint8_t>(from.verb));
  to.setSubject(outgoing_text(from.subject, kNameBytesMax));
  to.setRole(static_cast<std::uint8_t>(from.role));
  to.setIsTrusted(from.is_trusted);
  to.setIsReusable(from.is_reusable);
  to.setExpiresS(from.expires_s);
  to.setLabel(outgoing_text(from.label, kNameBytesMax));
}

AccessRequest read(wire::AccessRequest::Reader from) {
  AccessRequest to;
  read_protocols(from, to);
  to.build = read_text("build", from.getBuild(), kNameBytesMax);
  to.invite = read_text("invite", from.getInvite(), kInviteBytesMax);
  to.verb = read_enum("verb", from.getVerb(), AccessVerb::kUnban);
  to.subject = read_text("subject", from.getSubject(), kNameBytesMax);
  to.role = read_enum("role", from.getRole(), Role::kAdmin);
  to.is_trusted = from.getIsTrusted();
  to.is_reusable = from.getIsReusable();
  to.expires_s = from.getExpiresS();
  to.label = read_text("label", from.getLabel(), kNameBytesMax);
  return to;
}

void write(const AccessAnswer& from, wire::AccessAnswer::Builder to) {
  to.setProtocol(from.protocol);
  to.setSentence(outgoing_text(from.sentence, kSentenceBytesMax));
  auto invites = to.initInvites(length(from.invites.size()));
  for (unsigned i = 0; i < invites.size(); ++i) write_invite(from.invites[i], invites[i]);
  auto peers = to.initPeers(length(from.peers.size()));
  for (unsigned i = 0; i < peers.size(); ++i) write_peer(from.peers[i], peers[i]);
}

AccessAnswer read(wire::AccessAnswer::Reader from) {
  AccessAnswer to;
  to.protocol = from.getProtocol();
  to.sentence = read_text("sentence", from.getSentence(), kSentenceBytesMax);
  const auto invites = from.getInvites();
  const auto peers = from.getPeers();
  if (invites.size() > kInvitesMax) malformed("invites", "{} entries", invites.size());
  if (peers.size() > kPeersMax) malformed("peers", "{} entries", peers.size());
  for (const auto invite : invites) to.invites.push_back(read_invite(invite));
  for (const auto peer : peers) to.peers.push_back(read_peer(peer));
  return to;
}

}  // namespace gleaner

// Observe and RunStatus: what a tool asks, and how the run stands.
#include "common/text.hpp"
#include "schema/wire/wire.hpp"

namespace gleaner {
namespace {

// On the wire a holder is its place plus one.
std::optional<std::uint32_t> read_holder(std::uint32_t holder, std::size_t volunteers) {
  if (holder > volunteers) malformed("shards.holder", "{} of {}", holder, volunteers);
  return holder == 0 ? std::nullopt : std::optional(holder - 1);
}

void write_volunteer(const VolunteerEntry& from, wire::VolunteerEntry::Builder to) {
  to.setName(outgoing_text(from.name, kNameBytesMax));
  to.setPeer(outgoing_text(from.peer, kNameBytesMax));
  to.setIsLocal(from.is_local);
  to.setIsLeaving(from.is_leaving);
  to.setCores(from.cores);
  to.setSpeed(from.speed);
  to.setRoundTripUs(from.round_trip_us);
  to.setSilentUs(from.silent_us);
  to.setUnitsOut(from.units_out);
  to.setOwes(from.owes);
  to.setOwesUs(from.owes_us);
  to.setNoShards(outgoing_text(from.no_shards, kSentenceBytesMax));
  to.setHereUs(from.here_us);
}

VolunteerEntry read_volunteer(wire::VolunteerEntry::Reader from) {
  VolunteerEntry to;
  to.name = read_text("volunteers.name", from.getName(), kNameBytesMax);
  to.peer = read_text("volunteers.peer", from.getPeer(), kNameBytesMax);
  to.is_local = from.getIsLocal();
  to.is_leaving = from.getIsLeaving();
  to.cores = from.getCores();
  to.speed = read_float("volunteers.speed", from.getSpeed());
  to.round_trip_us = from.getRoundTripUs();
  to.silent_us = from.getSilentUs();
  to.units_out = from.getUnitsOut();
  to.owes = from.getOwes();
  to.owes_us = from.getOwesUs();
  to.no_shards = read_text("volunteers.no_shards", from.getNoShards(), kSentenceBytesMax);
  to.here_us = from.getHereUs();
  return to;
}

void write_shard(const ShardEntry& from, wire::ShardEntry::Builder to) {
  to.setState(static_cast<std::uint8_t>(from.state));
  to.setHolder(from.holder ? *from.holder + 1 : 0);
  to.setSinceUs(from.since_us);
  to.setCommitted(from.committed);
  to.setNextBatch(from.next_batch);
  to.setChunks(from.chunks);
  to.setChunksSent(from.chunks_sent);
  to.setHeldBefore(outgoing_text(from.held_before, kNameBytesMax));
  to.setMovedWhy(outgoing_text(from.moved_why, kSentenceBytesMax));
}

ShardEntry read_shard(wire::ShardEntry::Reader from, std::size_t volunteers) {
  ShardEntry to;
  to.state = read_enum("shards.state", from.getState(), LeaseState::kReleasing);
  to.holder = read_holder(from.getHolder(), volunteers);
  to.since_us = from.getSinceUs();
  to.committed = from.getCommitted();
  to.next_batch = from.getNextBatch();
  to.chunks = from.getChunks();
  to.chunks_sent = from.getChunksSent();
  if (to.chunks > kPartsMax * 2 || to.chunks_sent > to.chunks) {
    malformed("shards.chunks_sent", "{} of {} chunks", to.chunks_sent, to.chunks);
  }
  to.held_before = read_text("shards.held_before", from.getHeldBefore(), kNameBytesMax);
  to.moved_why = read_text("shards.moved_why", from.getMovedWhy(), kSentenceBytesMax);
  return to;
}

DepartureEntry read_departure(wire::DepartureEntry::Reader from) {
  return {read_text("gone.name", from.getName(), kNameBytesMax),
          read_text("gone.reason", from.getReason(), kSentenceBytesMax), from.getAgoUs(),
          from.getShards()};
}

void check_count(const char* field, std::size_t count, std::size_t most) {
  if (count > most) malformed(field, "{} entries, at most {}", count, most);
}

void write_lists(const RunStatus& from, wire::RunStatus::Builder to) {
  auto volunteers = to.initVolunteers(static_cast<unsigned>(from.volunteers.size()));
  for (unsigned i = 0; i < volunteers.size(); ++i) {
    write_volunteer(from.volunteers[i], volunteers[i]);
  }
  auto shards = to.initShards(static_cast<unsigned>(from.shards.size()));
  for (unsigned i = 0; i < shards.size(); ++i) write_shard(from.shards[i], shards[i]);
  to.setInputShards(from.input_shards);
  auto gone = to.initGone(static_cast<unsigned>(from.gone.size()));
  for (unsigned i = 0; i < gone.size(); ++i) {
    gone[i].setName(outgoing_text(from.gone[i].name, kNameBytesMax));
    gone[i].setReason(outgoing_text(from.gone[i].reason, kSentenceBytesMax));
    gone[i].setAgoUs(from.gone[i].ago_us);
    gone[i].setShards(from.gone[i].shards);
  }
}

void write_progress(const RunProgress& from, wire::RunStatus::Builder to) {
  to.setStage(static_cast<std::uint8_t>(from.stage));
  to.setRound(from.round);
  to.setRounds(from.rounds);
  to.setBatch(from.batch);
  to.setBatches(from.batches);
  to.setEpoch(from.epoch);
  to.setEpochs(from.epochs);
  to.setStaleness(from.staleness);
  to.setExamplesPerSecond(static_cast<float>(from.examples_per_second));
  to.setEtaSeconds(static_cast<float>(from.eta_seconds));
  to.setLoss(static_cast<float>(from.loss));
  to.setActive(static_cast<float>(from.active));
  to.setPrecisionAt1(static_cast<float>(from.precision.at_1()));
  to.setVolunteersHere(from.volunteers);
}

RunProgress read_progress(wire::RunStatus::Reader from) {
  RunProgress to;
  to.stage = read_enum("stage", from.getStage(), RunStage::kDone);
  to.round = from.getRound();
  to.rounds = from.getRounds();
  to.batch = from.getBatch();
  to.batches = from.getBatches();
  to.epoch = from.getEpoch();
  to.epochs = from.getEpochs();
  to.staleness = from.getStaleness();
  to.examples_per_second = double{read_float("examples_per_second", from.getExamplesPerSecond())};
  to.eta_seconds = double{read_float("eta_seconds", from.getEtaSeconds())};
  to.loss = double{read_float("loss", from.getLoss())};
  to.active = double{read_float("active", from.getActive())};
  to.precision.p[0] = double{read_float("precision_at_1", from.getPrecisionAt1())};
  to.volunteers = from.getVolunteersHere();
  return to;
}

// Each list is fetched once: a message may be traversed only so far.
void read_lists(wire::RunStatus::Reader from, RunStatus& to) {
  const auto volunteers = from.getVolunteers();
  const auto shards = from.getShards();
  const auto departures = from.getGone();
  check_count("volunteers", volunteers.size(), kOutputShardsMax);
  check_count("shards", shards.size(), kOutputShardsMax + kInputShardsMax);
  check_count("input_shards", from.getInputShards(), shards.size());
  check_count("gone", departures.size(), kDeparturesMax);
  for (const auto volunteer : volunteers) to.volunteers.push_back(read_volunteer(volunteer));
  for (const auto shard : shards) to.shards.push_back(read_shard(shard, volunteers.size()));
  to.input_shards = from.getInputShards();
  for (const auto gone : departures) to.gone.push_back(read_departure(gone));
}

}  // namespace

void write(const Observe& from, wire::Observe::Builder to) {
  to.setProtocolMin(from.protocol_min);
  to.setProtocolMax(from.protocol_max);
  to.setBuild(outgoing_text(from.build, kNameBytesMax));
  to.setInvite(outgoing_text(from.invite, kInviteBytesMax));
}

Observe read(wire::Observe::Reader from) {
  Observe to;
  read_protocols(from, to);
  to.build = read_text("build", from.getBuild(), kNameBytesMax);
  to.invite = read_text("invite", from.getInvite(), kInviteBytesMax);
  return to;
}

void write(const RunStatus& from, wire::RunStatus::Builder to) {
  to.setProtocol(from.protocol);
  to.setBuild(outgoing_text(from.build, kNameBytesMax));
  to.setRun(outgoing_text(from.run, kNameBytesMax));
  to.setLife(from.life);
  write_progress(from.progress, to);
  to.setWaitOwner(static_cast<std::uint8_t>(from.wait_owner));
  to.setIsHeldUp(from.is_held_up);
  to.setWaitsFor(outgoing_text(from.waits_for, kSentenceBytesMax));
  to.setWaitsUs(from.waits_us);
  to.setStoreBytes(from.store_bytes);
  to.setFreeBytes(from.free_bytes);
  write_lists(from, to);
}

RunStatus read(wire::RunStatus::Reader from) {
  RunStatus to;
  to.protocol = from.getProtocol();
  to.build = read_text("build", from.getBuild(), kNameBytesMax);
  to.run = read_text("run", from.getRun(), kNameBytesMax);
  to.life = from.getLife();
  to.progress = read_progress(from);
  to.wait_owner = read_enum("wait_owner", from.getWaitOwner(), WaitOwner::kStore);
  to.is_held_up = from.getIsHeldUp();
  to.waits_for = read_text("waits_for", from.getWaitsFor(), kSentenceBytesMax);
  to.waits_us = from.getWaitsUs();
  to.store_bytes = from.getStoreBytes();
  to.free_bytes = from.getFreeBytes();
  read_lists(from, to);
  return to;
}

// AccessRequest and AccessAnswer: who may do what, as an administrator asks for it.

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

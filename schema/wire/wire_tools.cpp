// Observe and RunStatus: what a tool asks, and how the run stands; AccessRequest and AccessAnswer:
// who may do what, as an administrator asks for it.
#include <type_traits>

#include "common/text.hpp"
#include "schema/wire/wire.hpp"

namespace gleaner {
namespace {

// Each struct has one table of its fields, in the order in which they are written. It is called
// with the struct, as `e`, and what writes or reads a field, as `f`, which is given the field's
// name in errors, the field, and the ways to and from the wire; after that the most bytes of a
// text, or the last value of an enumeration.

#define NAMED(name, field, Field)                              \
  name, e.field, [](const auto& w) { return w.get##Field(); }, \
      [](auto& w, const auto& value) { w.set##Field(value); }
#define FIELD(field, Field) NAMED(#field, field, Field)

template <typename Builder>
struct FieldWriter {
  Builder to;

  template <typename T, typename Get, typename Set, typename... Bound>
  void operator()(const char* /*name*/, const T& value, Get /*get*/, Set set, Bound... bound) {
    if constexpr (std::is_same_v<T, std::string>) {
      set(to, outgoing_text(value, bound...));
    } else if constexpr (std::is_enum_v<T>) {
      set(to, static_cast<std::uint8_t>(value));
    } else if constexpr (std::is_same_v<T, double>) {
      set(to, static_cast<float>(value));
    } else {
      set(to, value);
    }
  }
};

template <typename Reader>
struct FieldReader {
  Reader from;
  std::string list;  // before names: "", or a list's and a dot

  template <typename T, typename Get, typename Set, typename... Bound>
  void operator()(const char* name, T& value, Get get, Set /*set*/, Bound... bound) {
    if constexpr (std::is_same_v<T, std::string>) {
      value = read_text((list + name).c_str(), get(from), bound...);
    } else if constexpr (std::is_enum_v<T>) {
      value = read_enum((list + name).c_str(), get(from), bound...);
    } else if constexpr (std::is_floating_point_v<T>) {
      value = T{read_float((list + name).c_str(), get(from))};
    } else {
      value = get(from);
    }
  }
};

template <typename Entry, typename List, typename Table>
void write_list(const std::vector<Entry>& from, List to, const Table& table) {
  for (unsigned i = 0; i < to.size(); ++i) {
    FieldWriter<decltype(to[i])> writer{to[i]};
    table(from[i], writer);
  }
}

template <typename Entry, typename List, typename Table>
void read_list(const char* name, List from, std::vector<Entry>& to, const Table& table) {
  for (const auto entry : from) {
    FieldReader<decltype(from[0])> reader{entry, std::string(name) + "."};
    table(to.emplace_back(), reader);
  }
}

constexpr auto kVolunteer = [](auto& e, auto& f) {
  f(FIELD(name, Name), kNameBytesMax);
  f(FIELD(peer, Peer), kNameBytesMax);
  f(FIELD(is_local, IsLocal));
  f(FIELD(is_leaving, IsLeaving));
  f(FIELD(cores, Cores));
  f(FIELD(speed, Speed));
  f(FIELD(round_trip_us, RoundTripUs));
  f(FIELD(silent_us, SilentUs));
  f(FIELD(units_out, UnitsOut));
  f(FIELD(owes, Owes));
  f(FIELD(owes_us, OwesUs));
  f(FIELD(no_shards, NoShards), kSentenceBytesMax);
  f(FIELD(here_us, HereUs));
};

// Without the holder: on the wire that is its place plus one.
constexpr auto kShard = [](auto& e, auto& f) {
  f(FIELD(state, State), LeaseState::kReleasing);
  f(FIELD(since_us, SinceUs));
  f(FIELD(committed, Committed));
  f(FIELD(next_batch, NextBatch));
  f(FIELD(chunks, Chunks));
  f(FIELD(chunks_sent, ChunksSent));
  f(FIELD(held_before, HeldBefore), kNameBytesMax);
  f(FIELD(moved_why, MovedWhy), kSentenceBytesMax);
};

constexpr auto kDeparture = [](auto& e, auto& f) {
  f(FIELD(name, Name), kNameBytesMax);
  f(FIELD(reason, Reason), kSentenceBytesMax);
  f(FIELD(ago_us, AgoUs));
  f(FIELD(shards, Shards));
};

// Without protocol, which answers of all versions have, and lists.
constexpr auto kStatus = [](auto& e, auto& f) {
  f(FIELD(build, Build), kNameBytesMax);
  f(FIELD(run, Run), kNameBytesMax);
  f(FIELD(life, Life));
  f(NAMED("stage", progress.stage, Stage), RunStage::kDone);
  f(NAMED("round", progress.round, Round));
  f(NAMED("rounds", progress.rounds, Rounds));
  f(NAMED("batch", progress.batch, Batch));
  f(NAMED("batches", progress.batches, Batches));
  f(NAMED("epoch", progress.epoch, Epoch));
  f(NAMED("epochs", progress.epochs, Epochs));
  f(NAMED("staleness", progress.staleness, Staleness));
  f(NAMED("examples_per_second", progress.examples_per_second, ExamplesPerSecond));
  f(NAMED("eta_seconds", progress.eta_seconds, EtaSeconds));
  f(NAMED("loss", progress.loss, Loss));
  f(NAMED("active", progress.active, Active));
  f(NAMED("precision_at_1", progress.precision.p[0], PrecisionAt1));
  f(NAMED("volunteers_here", progress.volunteers, VolunteersHere));
  f(FIELD(wait_owner, WaitOwner), WaitOwner::kStore);
  f(FIELD(is_held_up, IsHeldUp));
  f(FIELD(waits_for, WaitsFor), kSentenceBytesMax);
  f(FIELD(waits_us, WaitsUs));
  f(FIELD(store_bytes, StoreBytes));
  f(FIELD(free_bytes, FreeBytes));
  f(FIELD(input_shards, InputShards));
};

constexpr auto kInvite = [](auto& e, auto& f) {
  f(FIELD(id, Id), kNameBytesMax);
  f(FIELD(role, Role), Role::kAdmin);
  f(FIELD(is_trusted, IsTrusted));
  f(FIELD(is_reusable, IsReusable));
  f(FIELD(state, State), kNameBytesMax);
  f(FIELD(created_wall, CreatedWall));
  f(FIELD(expires_wall, ExpiresWall));
  f(FIELD(address, Address), kSentenceBytesMax);
  f(FIELD(label, Label), kNameBytesMax);
};

constexpr auto kPeer = [](auto& e, auto& f) {
  f(FIELD(id, Id), kNameBytesMax);
  f(FIELD(name, Name), kNameBytesMax);
  f(FIELD(peer, Peer), kNameBytesMax);
  f(FIELD(invite, Invite), kNameBytesMax);
  f(FIELD(is_here, IsHere));
  f(FIELD(is_trusted, IsTrusted));
  f(FIELD(is_banned, IsBanned));
  f(FIELD(reason, Reason), kNameBytesMax);
};

constexpr auto kRequest = [](auto& e, auto& f) {
  f(FIELD(verb, Verb), AccessVerb::kUnban);
  f(FIELD(subject, Subject), kNameBytesMax);
  f(FIELD(role, Role), Role::kAdmin);
  f(FIELD(is_trusted, IsTrusted));
  f(FIELD(is_reusable, IsReusable));
  f(FIELD(expires_s, ExpiresS));
  f(FIELD(label, Label), kNameBytesMax);
};

// First fields of whoever introduces itself.
constexpr auto kIntroduction = [](auto& e, auto& f) {
  f(FIELD(protocol_min, ProtocolMin));
  f(FIELD(protocol_max, ProtocolMax));
  f(FIELD(build, Build), kNameBytesMax);
  f(FIELD(invite, Invite), kInviteBytesMax);
};

#undef FIELD
#undef NAMED

void check_count(const char* field, std::size_t count, std::size_t most) {
  if (count > most) malformed(field, "{} entries, at most {}", count, most);
}

}  // namespace

void write(const Observe& from, wire::Observe::Builder to) {
  FieldWriter<wire::Observe::Builder> writer{to};
  kIntroduction(from, writer);
}

Observe read(wire::Observe::Reader from) {
  Observe to;
  read_protocols(from, to);
  FieldReader<wire::Observe::Reader> reader{from, ""};
  kIntroduction(to, reader);
  return to;
}

void write(const RunStatus& from, wire::RunStatus::Builder to) {
  to.setProtocol(from.protocol);
  FieldWriter<wire::RunStatus::Builder> writer{to};
  kStatus(from, writer);
  write_list(from.volunteers, to.initVolunteers(length(from.volunteers.size())), kVolunteer);
  auto shards = to.initShards(length(from.shards.size()));
  write_list(from.shards, shards, kShard);
  for (unsigned i = 0; i < shards.size(); ++i) {
    shards[i].setHolder(from.shards[i].holder ? *from.shards[i].holder + 1 : 0);
  }
  write_list(from.gone, to.initGone(length(from.gone.size())), kDeparture);
}

// Each list is fetched once: a message may be traversed only so far.
RunStatus read(wire::RunStatus::Reader from) {
  RunStatus to;
  to.protocol = from.getProtocol();
  FieldReader<wire::RunStatus::Reader> reader{from, ""};
  kStatus(to, reader);
  const auto volunteers = from.getVolunteers();
  const auto shards = from.getShards();
  const auto departures = from.getGone();
  check_count("volunteers", volunteers.size(), kOutputShardsMax);
  check_count("shards", shards.size(), kOutputShardsMax + kInputShardsMax);
  check_count("input_shards", to.input_shards, shards.size());
  check_count("gone", departures.size(), kDeparturesMax);
  read_list("volunteers", volunteers, to.volunteers, kVolunteer);
  read_list("shards", shards, to.shards, kShard);
  for (unsigned i = 0; i < shards.size(); ++i) {
    ShardEntry& shard = to.shards[i];
    const std::uint32_t holder = shards[i].getHolder();
    if (holder > volunteers.size()) {
      malformed("shards.holder", "{} of {}", holder, volunteers.size());
    }
    if (holder > 0) shard.holder = holder - 1;
    if (shard.chunks > kPartsMax * 2 || shard.chunks_sent > shard.chunks) {
      malformed("shards.chunks_sent", "{} of {} chunks", shard.chunks_sent, shard.chunks);
    }
  }
  read_list("gone", departures, to.gone, kDeparture);
  return to;
}

void write(const AccessRequest& from, wire::AccessRequest::Builder to) {
  FieldWriter<wire::AccessRequest::Builder> writer{to};
  kIntroduction(from, writer);
  kRequest(from, writer);
}

AccessRequest read(wire::AccessRequest::Reader from) {
  AccessRequest to;
  read_protocols(from, to);
  FieldReader<wire::AccessRequest::Reader> reader{from, ""};
  kIntroduction(to, reader);
  kRequest(to, reader);
  return to;
}

void write(const AccessAnswer& from, wire::AccessAnswer::Builder to) {
  to.setProtocol(from.protocol);
  to.setSentence(outgoing_text(from.sentence, kSentenceBytesMax));
  write_list(from.invites, to.initInvites(length(from.invites.size())), kInvite);
  write_list(from.peers, to.initPeers(length(from.peers.size())), kPeer);
}

AccessAnswer read(wire::AccessAnswer::Reader from) {
  AccessAnswer to;
  to.protocol = from.getProtocol();
  to.sentence = read_text("sentence", from.getSentence(), kSentenceBytesMax);
  const auto invites = from.getInvites();
  const auto peers = from.getPeers();
  check_count("invites", invites.size(), kInvitesMax);
  check_count("peers", peers.size(), kPeersMax);
  read_list("invites", invites, to.invites, kInvite);
  read_list("peers", peers, to.peers, kPeer);
  return to;
}

}  // namespace gleaner

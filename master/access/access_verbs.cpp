#include "master/access/access_verbs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "common/access/master_address.hpp"
#include "common/limits.hpp"
#include "schema/versions.hpp"

namespace gleaner {
namespace {

Error unusable(std::string sentence) {
  return {ErrorCode::kInvalidArgument, std::move(sentence)};
}

struct KnownPeer {
  std::string name;
  std::string peer;
  std::optional<InviteId> invite;
  bool is_here = false;
};

using KnownPeers = std::map<KeyId, KnownPeer>;

KnownPeers known_peers(const AccessBook& book, const std::vector<SeenPeer>& seen) {
  KnownPeers known;
  for (const auto& [key, rule] : book.peers) known[key].name = rule.name;
  for (const auto& [id, invite] : book.invites) {
    if (invite.used_by) known[*invite.used_by].invite = id;
  }
  for (const SeenPeer& peer : seen) {
    known[peer.key] = {peer.name, peer.peer, peer.invite, peer.is_here};
  }
  return known;
}

// By its id, the begin of it (6 characters at least), or its name.
Result<KeyId> find_peer(const KnownPeers& known, const std::string& subject) {
  if (const auto whole = parse_key_id(subject)) return *whole;
  std::vector<KeyId> found;
  for (const auto& [key, peer] : known) {
    const bool is_begin = subject.size() >= 6 && to_text(key).starts_with(subject);
    if (is_begin || (!subject.empty() && peer.name == subject)) found.push_back(key);
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    return unusable(fmt::format("no peer is known as '{}': `gleaner peers` lists them", subject));
  }
  return unusable(fmt::format("'{}' names {} peers: give the id that `gleaner peers` lists",
                              subject, found.size()));
}

InviteEntry entry_of(const AccessBook& book, const KeyPair& master, InviteId id, std::int64_t now) {
  const Invite& invite = book.invites.at(id);
  InviteEntry entry;
  entry.id = to_text(id);
  entry.role = invite.role;
  entry.is_trusted = invite.is_trusted;
  entry.is_reusable = invite.is_reusable;
  entry.state = state_of(invite, now);
  entry.created_wall = static_cast<std::uint64_t>(invite.created);
  entry.expires_wall = static_cast<std::uint64_t>(invite.expires);
  if (entry.state == "open" || entry.state == "used") {
    entry.address = invite_address(book.where, master, id);
  }
  entry.label = invite.label;
  return entry;
}

Result<AccessAnswer> create(AccessBook& book, const KeyPair& master, const AccessRequest& request,
                            std::int64_t now) {
  Invite invite;
  invite.role = request.role;
  invite.is_trusted = request.is_trusted;
  invite.is_reusable = request.is_reusable;
  invite.created = now;
  constexpr auto kMost = std::uint64_t{1} << 40;
  if (request.expires_s > kMost) return unusable("the invite would outlive everybody");
  if (request.expires_s > 0) invite.expires = now + static_cast<std::int64_t>(request.expires_s);
  invite.label = request.label;
  const auto id = add_invite(book, std::move(invite));
  if (!id) return id.error();
  AccessAnswer answer;
  answer.sentence = fmt::format("invite {} is made", to_text(*id));
  answer.invites.push_back(entry_of(book, master, *id, now));
  return answer;
}

Result<AccessAnswer> revoke(AccessBook& book, const AccessRequest& request) {
  const auto id = parse_invite_id(request.subject);
  const auto found = id ? book.invites.find(*id) : book.invites.end();
  if (found == book.invites.end()) {
    return unusable(
        fmt::format("there is no invite {}: `gleaner invite list` lists them", request.subject));
  }
  found->second.is_revoked = true;
  AccessAnswer answer;
  answer.sentence = fmt::format("invite {} is revoked: who came by it is sent away", to_text(*id));
  return answer;
}

Result<AccessAnswer> decide(AccessBook& book, const AccessRequest& request,
                            const KnownPeers& known) {
  const auto key = find_peer(known, request.subject);
  if (!key) return key.error();
  const auto seen = known.find(*key);
  const auto own = rule_of(book, *key);
  if (!own) return own.error();
  PeerRule& rule = **own;
  if (seen != known.end() && !seen->second.name.empty()) rule.name = seen->second.name;
  const char* what = "approved: it is trusted from now on";
  if (request.verb == AccessVerb::kApprove) rule.is_approved = true;
  if (request.verb == AccessVerb::kBan) {
    what = "banned";
    rule.is_banned = true;
    rule.reason = request.label;
  }
  if (request.verb == AccessVerb::kUnban) {
    what = "no longer banned";
    rule.is_banned = false;
    rule.reason.clear();
  }
  const std::string name = rule.name.empty() ? to_text(*key) : rule.name;
  if (!rule.is_banned && !rule.is_approved) book.peers.erase(*key);
  AccessAnswer answer;
  answer.sentence = fmt::format("{} is {}", name, what);
  return answer;
}

std::vector<PeerEntry> peer_entries(const AccessBook& book, const KnownPeers& known) {
  std::vector<PeerEntry> entries;
  for (const auto& [key, peer] : known) {
    if (entries.size() >= kPeersMax) break;
    PeerEntry entry;
    entry.id = to_text(key);
    entry.name = peer.name;
    entry.peer = peer.peer;
    entry.is_here = peer.is_here;
    if (peer.invite) entry.invite = to_text(*peer.invite);
    const auto invite = peer.invite ? book.invites.find(*peer.invite) : book.invites.end();
    entry.is_trusted =
        is_trusted(book, key, invite == book.invites.end() ? Invite() : invite->second);
    if (const auto rule = book.peers.find(key); rule != book.peers.end()) {
      entry.is_banned = rule->second.is_banned;
      entry.reason = rule->second.reason;
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

std::string invite_address(const std::string& where, const KeyPair& master, InviteId id) {
  const auto parsed = parse_host_port(where);
  MasterAddress address{parsed ? *parsed : HostPort{"HOST", 7070},
                        MasterAddress::Secure{master.id(), invite_key(master, id)}};
  return to_text(address);
}

Result<AccessAnswer> manage(AccessBook& book, const KeyPair& master, const AccessRequest& request,
                            const std::vector<SeenPeer>& seen, std::int64_t now) {
  Result<AccessAnswer> answer = AccessAnswer();
  switch (request.verb) {
    case AccessVerb::kListInvites:
      for (const auto& [id, invite] : book.invites) {
        answer->invites.push_back(entry_of(book, master, id, now));
      }
      break;
    case AccessVerb::kCreateInvite:
      answer = create(book, master, request, now);
      break;
    case AccessVerb::kRevokeInvite:
      answer = revoke(book, request);
      break;
    case AccessVerb::kListPeers:
      answer->peers = peer_entries(book, known_peers(book, seen));
      break;
    case AccessVerb::kApprove:
    case AccessVerb::kBan:
    case AccessVerb::kUnban:
      answer = decide(book, request, known_peers(book, seen));
      break;
  }
  if (answer) answer->protocol = kProtocolMax;
  return answer;
}

}  // namespace gleaner

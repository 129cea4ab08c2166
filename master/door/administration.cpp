#include "master/door/administration.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "common/access/addresses.hpp"
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

class Administration {
 public:
  Administration(AccessBook& book, const KeyPair& master, const AccessRequest& request,
                 std::int64_t now)
      : book_(book), master_(master), request_(request), now_(now) {}

  Result<AccessAnswer> create();
  Result<AccessAnswer> revoke();
  Result<AccessAnswer> decide(const KnownPeers& known);
  [[nodiscard]] InviteEntry invite(InviteId id) const;
  [[nodiscard]] std::vector<PeerEntry> peers(const KnownPeers& known) const;

 private:
  AccessBook& book_;
  const KeyPair& master_;
  const AccessRequest& request_;
  const std::int64_t now_;
};

}  // namespace

// Finds a peer by its id, the beginning of its id (at least 6 characters), or its name.
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

InviteEntry Administration::invite(InviteId id) const {
  const Invite& found = book_.invites.at(id);
  InviteEntry entry;
  entry.id = to_text(id);
  entry.role = found.role;
  entry.is_trusted = found.is_trusted;
  entry.is_reusable = found.is_reusable;
  entry.state = state_of(found, now_);
  entry.created_wall = static_cast<std::uint64_t>(found.created);
  entry.expires_wall = static_cast<std::uint64_t>(found.expires);
  if (entry.state == "open" || entry.state == "used") {
    entry.address = invite_address(book_.where, master_, id);
  }
  entry.label = found.label;
  return entry;
}

Result<AccessAnswer> Administration::create() {
  Invite invite;
  invite.role = request_.role;
  invite.is_trusted = request_.is_trusted;
  invite.is_reusable = request_.is_reusable;
  invite.created = now_;
  constexpr auto kMost = std::uint64_t{1} << 40;
  if (request_.expires_s > kMost) return unusable("the invite would outlive everybody");
  if (request_.expires_s > 0) invite.expires = now_ + static_cast<std::int64_t>(request_.expires_s);
  invite.label = request_.label;
  const auto id = add_invite(book_, std::move(invite));
  if (!id) return id.error();
  AccessAnswer answer;
  answer.sentence = fmt::format("invite {} is made", to_text(*id));
  answer.invites.push_back(this->invite(*id));
  return answer;
}

Result<AccessAnswer> Administration::revoke() {
  const auto id = parse_invite_id(request_.subject);
  const auto found = id ? book_.invites.find(*id) : book_.invites.end();
  if (found == book_.invites.end()) {
    return unusable(
        fmt::format("there is no invite {}: `gleaner invite list` lists them", request_.subject));
  }
  found->second.is_revoked = true;
  AccessAnswer answer;
  answer.sentence = fmt::format("invite {} is revoked: who came by it is sent away", to_text(*id));
  return answer;
}

Result<AccessAnswer> Administration::decide(const KnownPeers& known) {
  const auto key = find_peer(known, request_.subject);
  if (!key) return key.error();
  const auto seen = known.find(*key);
  const auto own = rule_of(book_, *key);
  if (!own) return own.error();
  PeerRule& rule = **own;
  if (seen != known.end() && !seen->second.name.empty()) rule.name = seen->second.name;
  const char* what = "approved: it is trusted from now on";
  if (request_.verb == AccessVerb::kApprove) rule.is_approved = true;
  if (request_.verb == AccessVerb::kBan) {
    what = "banned";
    rule.is_banned = true;
    rule.reason = request_.label;
  }
  if (request_.verb == AccessVerb::kUnban) {
    what = "no longer banned";
    rule.is_banned = false;
    rule.reason.clear();
  }
  const std::string name = rule.name.empty() ? to_text(*key) : rule.name;
  if (!rule.is_banned && !rule.is_approved) book_.peers.erase(*key);
  AccessAnswer answer;
  answer.sentence = fmt::format("{} is {}", name, what);
  return answer;
}

std::vector<PeerEntry> Administration::peers(const KnownPeers& known) const {
  std::vector<PeerEntry> entries;
  for (const auto& [key, peer] : known) {
    if (entries.size() >= kPeersMax) break;
    PeerEntry entry;
    entry.id = to_text(key);
    entry.name = peer.name;
    entry.peer = peer.peer;
    entry.is_here = peer.is_here;
    if (peer.invite) entry.invite = to_text(*peer.invite);
    const auto invite = peer.invite ? book_.invites.find(*peer.invite) : book_.invites.end();
    entry.is_trusted =
        is_trusted(book_, key, invite == book_.invites.end() ? Invite() : invite->second);
    if (const auto rule = book_.peers.find(key); rule != book_.peers.end()) {
      entry.is_banned = rule->second.is_banned;
      entry.reason = rule->second.reason;
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::string invite_address(const std::string& where, const KeyPair& master, InviteId id) {
  const auto parsed = parse_host_port(where);
  MasterAddress address{parsed ? *parsed : HostPort{"HOST", 7070},
                        MasterAddress::Secure{master.id(), invite_key(master, id)}};
  return to_text(address);
}

Result<AccessAnswer> manage(AccessBook& book, const KeyPair& master, const AccessRequest& request,
                            const std::vector<SeenPeer>& seen, std::int64_t now) {
  Administration asked(book, master, request, now);
  Result<AccessAnswer> answer = AccessAnswer();
  switch (request.verb) {
    case AccessVerb::kListInvites:
      for (const auto& [id, invite] : book.invites) {
        answer->invites.push_back(asked.invite(id));
      }
      break;
    case AccessVerb::kCreateInvite:
      answer = asked.create();
      break;
    case AccessVerb::kRevokeInvite:
      answer = asked.revoke();
      break;
    case AccessVerb::kListPeers:
      answer->peers = asked.peers(known_peers(book, seen));
      break;
    case AccessVerb::kApprove:
    case AccessVerb::kBan:
    case AccessVerb::kUnban:
      answer = asked.decide(known_peers(book, seen));
      break;
  }
  if (answer) answer->protocol = kProtocolMax;
  return answer;
}

}  // namespace gleaner

#include "master/door/access_book.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <vector>

#include "common/access/addresses.hpp"
#include "common/ids.hpp"
#include "common/limits.hpp"
#include "common/text.hpp"
#include "schema/versions.hpp"

namespace gleaner {
namespace {

// With this number of convictions an invite is suspended.
constexpr std::uint32_t kConvictionsMax = 3;

constexpr std::string_view kFirstLine = "gleaner access 2";
// Begins a book in which invites have no convictions.
constexpr std::string_view kFirstLineBefore = "gleaner access 1";

Error refused(std::string sentence) {
  return {ErrorCode::kInvite, std::move(sentence)};
}

// Places a line is cut into at tabs; the last one may be empty.
std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    const std::size_t tab = line.find('\t');
    fields.push_back(line.substr(0, tab));
    if (tab == std::string_view::npos) return fields;
    line.remove_prefix(tab + 1);
  }
}

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t value = -1;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() || value < 0) {
    return std::nullopt;
  }
  return value;
}

bool is_text(std::string_view text) {
  return text.size() <= kNameBytesMax && is_printable(text);
}

bool read_invite(const std::vector<std::string_view>& fields, bool has_convictions,
                 AccessBook& book) {
  if (fields.size() != (has_convictions ? 10 : 9)) return false;
  const auto convictions =
      has_convictions ? parse_number(fields[9]) : std::optional<std::int64_t>(0);
  if (!convictions || *convictions > std::int64_t{kPeersMax}) return false;
  const auto id = parse_invite_id(fields[1]);
  const auto role = parse_role(fields[2]);
  const auto created = parse_number(fields[6]);
  const auto expires = parse_number(fields[7]);
  if (!id || raw(*id) == 0 || !role || !created || !expires || !is_text(fields[8])) return false;
  Invite invite;
  invite.role = *role;
  invite.is_trusted = fields[3] == "trusted";
  if (!invite.is_trusted && fields[3] != "stranger") return false;
  invite.is_reusable = fields[4] == "reusable";
  if (!invite.is_reusable && fields[4] != "unused") {
    invite.used_by = parse_key_id(fields[4]);
    if (!invite.used_by) return false;
  }
  invite.is_revoked = fields[5] == "revoked";
  if (!invite.is_revoked && fields[5] != "open") return false;
  invite.created = *created;
  invite.expires = *expires;
  invite.label = fields[8];
  invite.convictions = static_cast<std::uint32_t>(*convictions);
  return book.invites.size() < kInvitesMax && book.invites.emplace(*id, std::move(invite)).second;
}

bool read_peer(const std::vector<std::string_view>& fields, AccessBook& book) {
  if (fields.size() != 5) return false;
  const auto id = parse_key_id(fields[1]);
  if (!id || !is_text(fields[3]) || !is_text(fields[4])) return false;
  PeerRule rule;
  rule.is_banned = fields[2] == "banned" || fields[2] == "banned,approved";
  rule.is_approved = fields[2] == "approved" || fields[2] == "banned,approved";
  if (!rule.is_banned && !rule.is_approved) return false;
  rule.name = fields[3];
  rule.reason = fields[4];
  return book.peers.size() < kPeersMax && book.peers.emplace(*id, std::move(rule)).second;
}

bool is_expired(const Invite& invite, std::int64_t now) {
  return invite.expires != 0 && invite.expires <= now;
}

}  // namespace

InviteKey invite_key(const KeyPair& master, InviteId id) {
  return {id, master.derive("invite " + to_text(id))};
}

bool is_suspended(const Invite& invite) {
  return !invite.is_trusted && invite.convictions >= kConvictionsMax;
}

bool is_banned(const AccessBook& book, const KeyId& key) {
  const auto rule = book.peers.find(key);
  return rule != book.peers.end() && rule->second.is_banned;
}

const char* state_of(const Invite& invite, std::int64_t now) {
  if (invite.is_revoked) return "revoked";
  if (is_expired(invite, now)) return "expired";
  if (is_suspended(invite)) return "suspended";
  return invite.used_by ? "used" : "open";
}

Result<InviteId> add_invite(AccessBook& book, Invite invite) {
  if (book.invites.size() >= kInvitesMax) {
    const auto is_over = [&](const auto& entry) {
      return entry.second.is_revoked || is_expired(entry.second, invite.created);
    };
    auto oldest = book.invites.end();
    for (auto entry = book.invites.begin(); entry != book.invites.end(); ++entry) {
      if (is_over(*entry) &&
          (oldest == book.invites.end() || entry->second.created < oldest->second.created)) {
        oldest = entry;
      }
    }
    if (oldest == book.invites.end()) {
      return Error{
          ErrorCode::kResources,
          fmt::format("there are {} invites, and no more are kept: revoke some", kInvitesMax)};
    }
    book.invites.erase(oldest);
  }
  for (;;) {
    const InviteId id{random_bits() & kInviteIdMax};
    if (raw(id) != 0 && book.invites.emplace(id, invite).second) return id;
  }
}

bool is_trusted(const AccessBook& book, const KeyId& key, const Invite& invite) {
  const auto rule = book.peers.find(key);
  return invite.is_trusted || (rule != book.peers.end() && rule->second.is_approved);
}

Result<InviteId> valid_invite(const AccessBook& book, const KeyPair& master, std::string_view text,
                              std::int64_t now) {
  const auto shown = parse_invite_key(text);
  // A wrong secret and an id that does not exist are answered alike: guessing teaches nothing.
  const bool is_known = shown && (raw(shown->id) == 0 || book.invites.contains(shown->id));
  if (!shown || !is_same_secret(shown->secret, invite_key(master, shown->id).secret) || !is_known) {
    return refused(
        "this master does not know that invite: ask its owner for a line that `gleaner invite "
        "create` prints");
  }
  if (raw(shown->id) == 0) return shown->id;
  const Invite& entry = book.invites.at(shown->id);
  if (entry.is_revoked) {
    return refused("the invite was revoked: ask the master's owner for another one");
  }
  if (is_expired(entry, now)) {
    return refused("the invite has expired: ask the master's owner for another one");
  }
  return shown->id;
}

Result<Standing> admit(AccessBook& book, const KeyPair& master, const KeyId& key,
                       std::string_view invite, std::int64_t now) {
  const auto shown = valid_invite(book, master, invite, now);
  if (!shown) return shown.error();
  if (raw(*shown) == 0) return Standing{key, Role::kAdmin, true, false, *shown};
  Invite& entry = book.invites.at(*shown);
  if (is_banned(book, key)) {
    const std::string& reason = book.peers.at(key).reason;
    return refused(fmt::format("this key is banned{}: ask the master's owner",
                               reason.empty() ? "" : " (" + reason + ")"));
  }
  if (!entry.is_reusable) {
    if (entry.used_by && *entry.used_by != key) {
      return refused(
          "the invite was for one key, and another one has used it: ask the master's owner for an "
          "invite of your own (a volunteer keeps its key only in a --cache folder)");
    }
    entry.used_by = key;
  }
  const bool trusts = is_trusted(book, key, entry);
  return Standing{key, entry.role, trusts, false, *shown, !trusts && is_suspended(entry)};
}

Result<PeerRule*> rule_of(AccessBook& book, const KeyId& key) {
  if (!book.peers.contains(key) && book.peers.size() >= kPeersMax) {
    return Error{ErrorCode::kResources,
                 fmt::format("{} keys are banned or approved, and no more are kept", kPeersMax)};
  }
  return &book.peers[key];
}

std::string reason_to_go(const AccessBook& book, const Standing& standing, std::int64_t now) {
  if (standing.is_local || raw(standing.invite) == 0) return "";
  if (is_banned(book, standing.identity)) {
    const std::string& reason = book.peers.at(standing.identity).reason;
    return fmt::format("the master's owner has banned this key{}",
                       reason.empty() ? "" : " (" + reason + ")");
  }
  const auto invite = book.invites.find(standing.invite);
  if (invite == book.invites.end() || invite->second.is_revoked) {
    return "the master's owner has revoked the invite by which this volunteer came";
  }
  if (is_expired(invite->second, now)) {
    return "the invite by which this volunteer came has expired: ask the master's owner for "
           "another one";
  }
  return "";
}

std::string print(const AccessBook& book) {
  std::string text = fmt::format("{}\nwhere\t{}\n", kFirstLine, book.where);
  for (const auto& [id, invite] : book.invites) {
    text += fmt::format("invite\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", to_text(id),
                        role_name(invite.role), invite.is_trusted ? "trusted" : "stranger",
                        invite.is_reusable ? "reusable"
                        : invite.used_by   ? to_text(*invite.used_by)
                                           : "unused",
                        invite.is_revoked ? "revoked" : "open", invite.created, invite.expires,
                        invite.label, invite.convictions);
  }
  for (const auto& [id, rule] : book.peers) {
    text += fmt::format("peer\t{}\t{}\t{}\t{}\n", to_text(id),
                        rule.is_banned && rule.is_approved ? "banned,approved"
                        : rule.is_banned                   ? "banned"
                                                           : "approved",
                        rule.name, rule.reason);
  }
  return text;
}

Result<AccessBook> parse_access_book(std::string_view text) {
  AccessBook book;
  bool has_convictions = true;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::vector<std::string_view> fields = fields_of(line);
    bool is_good = false;
    if (number == 0) {
      has_convictions = line == kFirstLine;
      is_good = has_convictions || line == kFirstLineBefore;
    } else if (number == 1) {
      is_good = fields.size() == 2 && fields[0] == "where" && is_printable(fields[1]);
      if (is_good) book.where = fields[1];
    } else if (fields[0] == "invite") {
      is_good = read_invite(fields, has_convictions, book);
    } else if (fields[0] == "peer") {
      is_good = read_peer(fields, book);
    }
    ++number;
    if (!is_good) {
      return Error{ErrorCode::kCorrupt, fmt::format("line {} makes no sense", number)};
    }
  }
  if (number < 2) return Error{ErrorCode::kCorrupt, "it is cut short"};
  return book;
}

Result<Role> reader_role(const PageAccess& access, std::string_view invite, std::int64_t now) {
  if (!access.key) return Role::kObserver;
  const auto shown = valid_invite(access.book, *access.key, invite, now);
  if (!shown) return shown.error();
  if (*shown == InviteId{}) return Role::kAdmin;
  const Invite& entry = access.book.invites.at(*shown);
  if (!entry.is_reusable) {
    return Error{ErrorCode::kInvite,
                 "the invite is for one key, which a browser does not have: ask the master's owner "
                 "for one that `gleaner invite create --reusable` made"};
  }
  return entry.role;
}

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

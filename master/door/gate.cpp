#include "master/door/gate.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/limits.hpp"
#include "common/text.hpp"
#include "common/time.hpp"
#include "schema/versions.hpp"

namespace gleaner {
namespace {

// Remembered peers that the book does not have.
constexpr std::size_t kSeenMax = 1024;

Refusal refusal(const Error& error) {
  return {error.code, error.message, false};
}

// The invite in a first message.
const std::string* invite_in(const Message& first) {
  return std::visit(
      [](const auto& message) -> const std::string* {
        if constexpr (requires { message.invite; }) return &message.invite;
        return nullptr;
      },
      first);
}

// Refuses a program of another protocol. Volunteers and observers learn that later, from the core.
template <typename Introduction>
std::optional<Refusal> refusal_of_version(const Message& first, const char* program,
                                          std::uint32_t least = kProtocolMin) {
  const auto* from = std::get_if<Introduction>(&first);
  if (from == nullptr || (from->protocol_max >= least && from->protocol_min <= kProtocolMax)) {
    return std::nullopt;
  }
  return Refusal{ErrorCode::kVersion,
                 fmt::format("this master (version {}) speaks protocol {} to {}, the {} (version "
                             "{}) {} to {}: use programs of one version",
                             kBuildVersion, least, kProtocolMax, program, from->build,
                             from->protocol_min, from->protocol_max),
                 false};
}

// Why a peer of this standing may not send the first message.
std::optional<Refusal> refusal_of_role(const Message& first, const Standing& standing) {
  const bool is_volunteer =
      std::holds_alternative<RelayHello>(first) || std::holds_alternative<Hello>(first);
  if (is_volunteer && standing.role != Role::kVolunteer) {
    return Refusal{ErrorCode::kInvite,
                   fmt::format("this is an invite for an {}: to train takes one for a volunteer",
                               role_name(standing.role)),
                   false};
  }
  return std::nullopt;
}

Refusal too_many_come() {
  return {ErrorCode::kBusy,
          "too many volunteers have come by this invite in the last seconds: it tries again", true};
}

Refusal no_introduction(const Message& first) {
  return {ErrorCode::kProtocol, fmt::format("{} before a Hello", message_name(first)), false};
}

}  // namespace

Result<std::unique_ptr<Gate>> Gate::open(const std::string& store, Observer observer) {
  std::unique_ptr<Gate> gate(new Gate());
  gate->store_ = store;
  gate->observer_ = std::move(observer);
  auto key = KeyPair::load_or_make(master_key_path(store));
  if (!key) return key.error();
  gate->key_ = *key;
  auto lock = AccessLock::take(store, AccessLock::Wait::kYes);
  if (!lock) return lock.error();
  gate->lock_ = std::move(*lock);
  auto book = read_access_book(store);
  if (!book) return book.error();
  gate->book_ = std::move(*book);
  if (gate->book_.where.empty() && gate->book_.invites.empty()) {
    Invite first;
    first.is_trusted = true;
    first.is_reusable = true;
    first.created = wall_seconds();
    first.label = "made with the run";
    if (auto made = add_invite(gate->book_, std::move(first)); !made) return made.error();
  }
  return gate;
}

std::unique_ptr<Gate> Gate::open_to_all() {
  return std::unique_ptr<Gate>(new Gate());
}

Result<void> Gate::store_changes(AccessBook changed) {
  if (changed == book_) return {};
  if (auto written = write_access_book(store_, changed); !written) return written.error();
  book_ = std::move(changed);
  page_access_.reset();
  return {};
}

std::shared_ptr<const PageAccess> Gate::page_access() {
  if (!page_access_) page_access_ = std::make_shared<const PageAccess>(PageAccess{key_, book_});
  return page_access_;
}

Result<bool> Gate::convict(const KeyId& key, InviteId invite, const std::string& name,
                           const std::string& reason) {
  AccessBook changed = book_;
  const auto rule = rule_of(changed, key);
  if (!rule) return rule.error();
  (*rule)->is_banned = true;
  (*rule)->name = printable(name, kNameBytesMax);
  (*rule)->reason = printable(reason, kNameBytesMax);
  bool is_news = false;
  if (const auto found = changed.invites.find(invite); found != changed.invites.end()) {
    const bool was = is_suspended(found->second);
    ++found->second.convictions;
    is_news = !was && is_suspended(found->second);
  }
  if (auto stored = store_changes(std::move(changed)); !stored) return stored.error();
  return is_news;
}

Result<JoinLine> Gate::listening_at(const std::string& where) {
  if (!key_) return JoinLine{where, true, {}};
  AccessBook changed = book_;
  const std::string before = book_.where == where ? "" : book_.where;
  changed.where = where;
  if (auto stored = store_changes(std::move(changed)); !stored) return stored.error();
  const std::int64_t now = wall_seconds();
  const std::pair<const InviteId, Invite>* best = nullptr;
  for (const auto& entry : book_.invites) {
    const Invite& invite = entry.second;
    const bool is_for_all = invite.role == Role::kVolunteer && invite.is_reusable;
    if (!is_for_all || std::string_view(state_of(invite, now)) != "open") continue;
    const auto rank = [](const Invite& one) { return std::pair(!one.is_trusted, one.created); };
    if (best == nullptr || rank(invite) < rank(best->second)) best = &entry;
  }
  if (best == nullptr) return JoinLine{{}, false, before};
  return JoinLine{invite_address(where, *key_, best->first), best->second.is_trusted, before};
}

std::variant<Standing, Message> Gate::admit(const std::optional<KeyId>& key,
                                            const std::string& peer, const Message& first,
                                            std::int64_t now, Instant at) {
  const std::string* const invite = invite_in(first);
  if (invite == nullptr) return no_introduction(first);
  // An older relay would leave out the checks of gradients.
  if (auto refusal = refusal_of_version<RelayHello>(first, "relay", kProtocolOfChecks)) {
    return *refusal;
  }
  const bool is_relay = std::holds_alternative<RelayHello>(first);
  const bool is_volunteer = is_relay || std::holds_alternative<Hello>(first);
  if (!key_ || !key) {
    if (std::holds_alternative<AccessRequest>(first)) {
      return Refusal{ErrorCode::kInvite,
                     "this master was started with --insecure: it knows no invites and no peers",
                     false};
    }
    // Nobody proves an identity: each connection is a volunteer of its own.
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(peer.data());
    return Standing{key_id_of({bytes, peer.size()}),
                    is_volunteer ? Role::kVolunteer : Role::kObserver,
                    true,
                    false,
                    {}};
  }
  AccessBook changed = book_;
  if (auto refusal = refusal_of_version<AccessRequest>(first, "tool")) return *refusal;
  const Result<Standing> standing = gleaner::admit(changed, *key_, *key, *invite, now);
  if (!standing) return refusal(standing.error());
  // A question about the run before somebody joins does not use up the invite.
  const bool only_asks =
      std::holds_alternative<Observe>(first) && standing->role == Role::kVolunteer;
  if (only_asks) changed = book_;
  if (auto stored = store_changes(std::move(changed)); !stored) return refusal(stored.error());
  if (const auto* request = std::get_if<AccessRequest>(&first)) {
    if (standing->role != Role::kAdmin) {
      return Refusal{ErrorCode::kInvite, "only an invite for administrators allows this", false};
    }
    return manage_for(*request, now);
  }
  if (auto refusal = refusal_of_role(first, *standing)) return *refusal;
  // Each stranger that joins and leaves costs the others time.
  if (is_volunteer && !standing->is_trusted && !joins_.spend(to_text(standing->invite), at)) {
    return too_many_come();
  }
  if (is_volunteer) {
    const std::string& name =
        is_relay ? std::get<RelayHello>(first).name : std::get<Hello>(first).name;
    remember(*standing, name, peer);
  }
  ++here_[standing->identity];
  return *standing;
}

std::variant<Standing, Message> Gate::admit_behind(const Standing& relay, const KeyId& key,
                                                   std::int64_t now, Instant at) {
  Standing standing = relay;
  for (const KeyId& identity : {key, identity_behind(relay, key)}) {
    standing.identity = identity;
    if (const std::string reason = reason_to_go(book_, standing, now); !reason.empty()) {
      return Refusal{ErrorCode::kInvite, reason, false};
    }
  }
  if (!relay.is_trusted && !joins_.spend(to_text(relay.invite), at)) return too_many_come();
  const auto invite = book_.invites.find(relay.invite);
  standing.is_suspended =
      !relay.is_trusted && invite != book_.invites.end() && is_suspended(invite->second);
  ++here_[standing.identity];
  return standing;
}

std::variant<Standing, Message> Gate::manage_for(const AccessRequest& request, std::int64_t now) {
  std::vector<SeenPeer> seen;
  for (const auto& [id, peer] : seen_) {
    seen.push_back(peer);
    seen.back().is_here = here_.contains(id);
  }
  AccessBook changed = book_;
  Result<AccessAnswer> answer = manage(changed, *key_, request, seen, now);
  if (!answer) return refusal(answer.error());
  const bool is_change = !(changed == book_);
  std::vector<std::pair<KeyId, std::string>> bans;
  for (const auto& [key, rule] : changed.peers) {
    if (rule.is_banned && !is_banned(book_, key)) bans.emplace_back(key, rule.name);
  }
  if (auto stored = store_changes(std::move(changed)); !stored) return refusal(stored.error());
  if (is_change) judge(now);
  for (const auto& [key, name] : bans) {
    if (observer_.on_ban) observer_.on_ban(key, name);
  }
  return std::move(*answer);
}

void Gate::judge(std::int64_t now) {
  if (!observer_.on_change) return;
  observer_.on_change([this, now](const Standing& standing) -> std::optional<Refusal> {
    if (const std::string reason = reason_to_go(book_, standing, now); !reason.empty()) {
      return Refusal{ErrorCode::kInvite, reason, false};
    }
    const auto invite = book_.invites.find(standing.invite);
    const bool is_promoted = !standing.is_trusted && invite != book_.invites.end() &&
                             is_trusted(book_, standing.identity, invite->second);
    if (!is_promoted) return std::nullopt;
    return Refusal{ErrorCode::kInvite, "the master's owner trusts this volunteer: it comes again",
                   true};
  });
}

void Gate::tick(std::int64_t now) {
  const bool has_news = std::ranges::any_of(book_.invites, [&](const auto& entry) {
    return entry.second.expires > last_tick_ && entry.second.expires <= now;
  });
  last_tick_ = now;
  if (has_news) judge(now);
}

void Gate::remember(const Standing& standing, const std::string& name, const std::string& peer) {
  if (seen_.size() >= kSeenMax && !seen_.contains(standing.identity)) {
    const auto away = std::find_if(seen_.begin(), seen_.end(), [this](const auto& entry) {
      return !here_.contains(entry.first);
    });
    if (away == seen_.end()) return;
    seen_.erase(away);
  }
  seen_[standing.identity] = {standing.identity, name, peer, standing.invite, true};
}

std::vector<std::pair<KeyId, PeerRule>> Gate::banned() const {
  std::vector<std::pair<KeyId, PeerRule>> all;
  for (const auto& [key, rule] : book_.peers) {
    if (rule.is_banned) all.emplace_back(key, rule);
  }
  return all;
}

void Gate::gone(const Standing& standing) {
  const auto here = here_.find(standing.identity);
  if (here != here_.end() && --here->second == 0) here_.erase(here);
}

}  // namespace gleaner

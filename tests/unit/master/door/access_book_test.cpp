#include "master/door/access_book.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "common/limits.hpp"
#include "master/door/administration.hpp"
#include "master/see/run_api.hpp"

namespace gleaner {
namespace {

using Catch::Matchers::Contains;

constexpr std::int64_t kNow = 1'700'000'000;

struct Fixture {
  KeyPair master = KeyPair::make();
  AccessBook book;
  KeyId ann{1, 2}, bob{3, 4};

  InviteId add(Role role = Role::kVolunteer, bool is_reusable = true) {
    Invite invite;
    invite.role = role;
    invite.is_reusable = is_reusable;
    invite.created = kNow;
    return add_invite(book, invite).value();
  }

  [[nodiscard]] std::string text(InviteId id) const { return to_text(invite_key(master, id)); }

  Result<Standing> come(const KeyId& key, InviteId id, std::int64_t now = kNow) {
    return admit(book, master, key, text(id), now);
  }

  Result<AccessAnswer> ask(AccessVerb verb, const std::string& subject = "",
                           const std::string& label = "") {
    AccessRequest request;
    request.verb = verb;
    request.subject = subject;
    request.label = label;
    return manage(book, master, request, {{ann, "ann", "10.0.0.1:5", {}, true}}, kNow);
  }
};

}  // namespace

TEST_CASE("access: the run's page takes open invites that anybody may use", "[access]") {
  Fixture f;
  const InviteId observer = f.add(Role::kObserver), admin = f.add(Role::kAdmin),
                 one_off = f.add(Role::kObserver, false);
  const auto role = [&](const std::string& shown, std::int64_t now = kNow) {
    return reader_role({f.master, f.book}, shown, now);
  };
  REQUIRE(role(f.text(observer)).value() == Role::kObserver);
  REQUIRE(role(f.text(admin)).value() == Role::kAdmin);
  REQUIRE(role(f.text(f.add())).value() == Role::kVolunteer);
  REQUIRE(role(f.text(InviteId{})).value() == Role::kAdmin);  // the holder's of the store
  REQUIRE_THAT(role(f.text(one_off)).error().message, Contains("--reusable"));
  REQUIRE_FALSE(role("").ok());
  REQUIRE_FALSE(role(f.text(InviteId{12345})).ok());
  f.book.invites.at(observer).expires = kNow + 1;
  REQUIRE(role(f.text(observer)).ok());
  REQUIRE_FALSE(role(f.text(observer), kNow + 1).ok());
  f.book.invites.at(admin).is_revoked = true;
  REQUIRE_THAT(role(f.text(admin)).error().message, Contains("revoked"));
  REQUIRE(reader_role({std::nullopt, {}}, "", kNow).value() == Role::kObserver);  // --insecure
}

TEST_CASE("access: an invite gives its role and trust, and a wrong secret nothing", "[access]") {
  Fixture f;
  const InviteId open = f.add();
  const Standing standing = f.come(f.ann, open).value();
  REQUIRE(standing.identity == f.ann);
  REQUIRE(standing.role == Role::kVolunteer);
  REQUIRE_FALSE(standing.is_trusted);
  REQUIRE(f.come(f.bob, open).ok());  // reusable
  std::string wrong = f.text(open);
  wrong[20] = wrong[20] == 'a' ? 'b' : 'a';
  for (const std::string& shown :
       {wrong, std::string(), std::string(34, 'a'), f.text(open) + "a", f.text(InviteId{12345})}) {
    const auto refused = admit(f.book, f.master, f.ann, shown, kNow);
    REQUIRE_FALSE(refused.ok());
    REQUIRE(refused.error().code == ErrorCode::kInvite);
    REQUIRE_THAT(refused.error().message, Contains("does not know that invite"));
  }
  // Another master's invite of the same number.
  const KeyPair other = KeyPair::make();
  REQUIRE_FALSE(admit(f.book, other, f.ann, f.text(open), kNow).ok());
}

TEST_CASE("access: an invite for one belongs to the first key that comes by it", "[access]") {
  Fixture f;
  const InviteId id = f.add(Role::kVolunteer, false);
  REQUIRE(f.come(f.ann, id).ok());
  REQUIRE_THAT(f.come(f.bob, id).error().message, Contains("another one has used it"));
  REQUIRE(f.come(f.ann, id).ok());
  REQUIRE(std::string(state_of(f.book.invites.at(id), kNow)) == "used");
}

TEST_CASE("access: expired and revoked invites and banned keys are told apart", "[access]") {
  Fixture f;
  const InviteId id = f.add();
  f.book.invites.at(id).expires = kNow + 10;
  const Standing brief = f.come(f.ann, id, kNow + 9).value();
  REQUIRE(reason_to_go(f.book, brief, kNow + 9).empty());
  REQUIRE_THAT(reason_to_go(f.book, brief, kNow + 10), Contains("has expired"));
  REQUIRE_THAT(f.come(f.ann, id, kNow + 10).error().message, Contains("expired"));
  const InviteId second = f.add();
  const Standing here = f.come(f.ann, second).value();
  REQUIRE(reason_to_go(f.book, here, kNow).empty());
  REQUIRE(f.ask(AccessVerb::kBan, "ann", "it lied").ok());
  REQUIRE_THAT(f.come(f.ann, second).error().message, Contains("banned (it lied)"));
  REQUIRE_THAT(reason_to_go(f.book, here, kNow), Contains("banned this key (it lied)"));
  REQUIRE(f.come(f.bob, second).ok());
  REQUIRE(f.ask(AccessVerb::kUnban, to_text(f.ann).substr(0, 6)).ok());
  REQUIRE(f.come(f.ann, second).ok());
  REQUIRE(f.ask(AccessVerb::kRevokeInvite, to_text(second)).ok());
  REQUIRE_THAT(f.come(f.ann, second).error().message, Contains("revoked"));
  REQUIRE_THAT(reason_to_go(f.book, here, kNow), Contains("revoked the invite"));
  // The owner of the store and volunteers in the process come by no invite.
  REQUIRE(reason_to_go(f.book, Standing{f.ann, Role::kVolunteer, true, true, {}}, kNow).empty());
}

TEST_CASE("access: a stranger who is approved is trusted, and a name that two have is not guessed",
          "[access]") {
  Fixture f;
  const InviteId id = f.add();
  REQUIRE_FALSE(f.come(f.ann, id)->is_trusted);
  REQUIRE(f.ask(AccessVerb::kApprove, "ann").ok());
  REQUIRE(f.come(f.ann, id)->is_trusted);
  REQUIRE_THAT(f.ask(AccessVerb::kBan, "dora").error().message, Contains("gleaner peers"));
  f.book.peers[f.bob] = {false, true, "ann", ""};
  REQUIRE_THAT(f.ask(AccessVerb::kBan, "ann").error().message, Contains("names 2 peers"));
  const AccessAnswer peers = f.ask(AccessVerb::kListPeers).value();
  REQUIRE(peers.peers.size() == 2);
  REQUIRE(peers.peers[0].is_here);
  REQUIRE(peers.peers[0].peer == "10.0.0.1:5");
}

TEST_CASE("access: whoever holds the store is an administrator, and no list shows that invite",
          "[access]") {
  Fixture f;
  REQUIRE(f.come(f.ann, InviteId{})->role == Role::kAdmin);
  f.add();
  const AccessAnswer list = f.ask(AccessVerb::kListInvites).value();
  REQUIRE(list.invites.size() == 1);
  f.book.where = "h:1";
  REQUIRE_THAT(f.ask(AccessVerb::kListInvites)->invites[0].address, Contains("gleaner://h:1/"));
}

TEST_CASE("access: the book is read as it was written, and holds no secret", "[access]") {
  Fixture f;
  f.book.where = "127.0.0.1:7070";
  const InviteId one = f.add(Role::kVolunteer, false);
  const InviteId many = f.add(Role::kObserver);
  f.book.invites.at(one).label = "für \xc3\xa9l\xc3\xa8ves";
  f.book.invites.at(many).is_revoked = true;
  REQUIRE(f.come(f.ann, one).ok());
  f.book.peers[f.bob] = {true, true, "bob", "it lied"};
  const std::string text = print(f.book);
  REQUIRE(parse_access_book(text).value() == f.book);
  REQUIRE_THAT(text, !Contains(f.text(one).substr(8)) && !Contains(f.text(many).substr(8)));
  // A book from before convictions were counted.
  f.book.peers.clear();
  std::string before = print(f.book);
  before.replace(before.find("access 2"), 8, "access 1");
  for (std::size_t at = 0; (at = before.find("\t0\n", at)) != std::string::npos;)
    before.erase(at, 2);
  REQUIRE(parse_access_book(before).value() == f.book);
  // Any line that is cut or changed is refused with its number.
  for (std::size_t size = 0; size < text.size(); ++size) {
    const auto cut = parse_access_book(text.substr(0, size));
    if (cut) REQUIRE(print(*cut).size() <= size + 1);
  }
  std::string twice = text;
  twice += twice.substr(twice.rfind("peer\t"));
  REQUIRE_THAT(parse_access_book(twice).error().message, Contains("line 6 makes no sense"));
}

TEST_CASE("access: invites have a bound, and those that are over make room", "[access]") {
  Fixture f;
  const InviteId first = f.add();
  for (std::size_t i = 1; i < kInvitesMax; ++i) f.add();
  Invite more;
  more.created = kNow;
  REQUIRE(add_invite(f.book, more).error().code == ErrorCode::kResources);
  f.book.invites.at(first).is_revoked = true;
  REQUIRE(add_invite(f.book, more).ok());
  REQUIRE(f.book.invites.size() == kInvitesMax);
  REQUIRE_FALSE(f.book.invites.contains(first));
}

TEST_CASE("access: observers get figures and no names", "[access]") {
  RunStatus status;
  status.wait_owner = WaitOwner::kVolunteers;
  status.waits_for = "bilbo to load 1 shard";
  status.volunteers = {
      {"bilbo", "10.0.0.2:41234", false, true, 8, 1234.5F, 2100, 400, 2, true, 900, ""}};
  status.shards = {{LeaseState::kLoading, 0, 3, 3, 213, 32, 26, "atlas", "atlas is gone"}};
  status.gone = {{"atlas", "silent for 10 s", 4, 7}};
  status.progress.round = 5;
  keep_aggregates(status);
  REQUIRE(status.progress.round == 5);
  REQUIRE(status.volunteers[0].name == "volunteer 1");
  REQUIRE(status.volunteers[0].peer.empty());
  REQUIRE(status.volunteers[0].cores == 8);
  REQUIRE(status.shards[0].holder == 0U);
  REQUIRE(status.shards[0].held_before.empty());
  REQUIRE(status.shards[0].moved_why.empty());
  REQUIRE(status.gone.empty());
  REQUIRE(status.waits_for == "the work of volunteers");
}

TEST_CASE("access book: no more keys are decided about than can be read again", "[access]") {
  AccessBook book;
  for (std::uint64_t key = 0; key < kPeersMax; ++key) {
    PeerRule* const rule = rule_of(book, {1, key}).value();
    rule->is_banned = true;
  }
  REQUIRE(rule_of(book, {2, 0}).error().code == ErrorCode::kResources);
  REQUIRE(rule_of(book, {1, 0}).value()->is_banned);
  REQUIRE(parse_access_book(print(book)).value() == book);
}

}  // namespace gleaner

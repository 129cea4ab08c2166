#include "master/door/gate.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "common/access/addresses.hpp"
#include "master/door/administration.hpp"
#include "schema/versions.hpp"
#include "tests/unit/storage/temporary_folder.hpp"

namespace gleaner {
namespace {

using Catch::Matchers::Contains;
using test::TemporaryFolder;

constexpr std::int64_t kGateTime = 1'700'000'000;

Hello hello(const std::string& invite) {
  Hello said;
  said.name = "ann";
  said.invite = invite;
  return said;
}

struct Door {
  explicit Door(const std::string& store) {
    auto opened = Gate::open(
        store, {[this](const Gate::Verdict& v) { verdict = v(standing); },
                [this](const KeyId& key, const std::string&) { banned.push_back(key); }});
    REQUIRE(opened.ok());
    gate = std::move(*opened);
    const auto address = parse_master_address(gate->listening_at("h:7070").value().address);
    if (address) invite = to_text(address->secure->invite);
  }

  std::variant<Standing, Message> say(const Message& first, const KeyId& key = {1, 2}) {
    return gate->admit(key, "10.0.0.1:5", first, kGateTime, Instant{});
  }

  // As who has the store's folder.
  AccessAnswer manage(AccessVerb verb, const std::string& subject) {
    AccessRequest request;
    request.verb = verb;
    request.subject = subject;
    return manage(std::move(request));
  }

  // The text of a new invite for any strangers.
  std::string create() {
    AccessRequest request;
    request.verb = AccessVerb::kCreateInvite;
    request.is_reusable = true;
    const AccessAnswer made = manage(std::move(request));
    return to_text(parse_master_address(made.invites.at(0).address)->secure->invite);
  }

  AccessAnswer manage(AccessRequest request) {
    request.protocol_min = kProtocolMin;
    request.protocol_max = kProtocolMax;
    request.invite = to_text(invite_key(*gate->key(), InviteId{}));
    auto answer = say(request, {9, 9});
    return std::get<AccessAnswer>(std::get<Message>(std::move(answer)));
  }

  std::unique_ptr<Gate> gate;
  std::string invite;
  Standing standing;
  std::optional<Refusal> verdict;
  std::vector<KeyId> banned;
};

Refusal refusal_of(const std::variant<Standing, Message>& answer) {
  return std::get<Refusal>(std::get<Message>(answer));
}

}  // namespace

TEST_CASE("gate: the first start makes a key and one invite, and the next finds them", "[access]") {
  const TemporaryFolder store;
  std::string invite;
  {
    Door door(store.path());
    invite = door.invite;
    REQUIRE(std::get<Standing>(door.say(hello(invite))).is_trusted);
  }
  Door door(store.path());
  REQUIRE(door.invite == invite);
  REQUIRE(door.manage(AccessVerb::kListInvites, "").invites.size() == 1);
}

TEST_CASE("gate: a second process does not get the book while a master has it", "[access]") {
  const TemporaryFolder store;
  Door door(store.path());
  REQUIRE(AccessLock::take(store.path(), AccessLock::Wait::kNo).error().code == ErrorCode::kBusy);
}

TEST_CASE("gate: revocation and bans reach who is here and outlive the master", "[access]") {
  const TemporaryFolder store;
  std::string invite;
  {
    Door door(store.path());
    invite = door.invite;
    door.standing = std::get<Standing>(door.say(hello(invite)));
    door.manage(AccessVerb::kBan, "ann");
    REQUIRE(door.verdict.has_value());
    REQUIRE_FALSE(door.verdict->retry);
    REQUIRE_THAT(door.verdict->sentence, Contains("banned"));
    door.manage(AccessVerb::kBan, "ann");
    REQUIRE(door.banned == std::vector<KeyId>{{1, 2}});  // told once
    door.manage(AccessVerb::kRevokeInvite, to_text(door.standing.invite));
  }
  Door door(store.path());
  REQUIRE(door.invite.empty());  // none is open
  REQUIRE_THAT(refusal_of(door.say(hello(invite))).sentence, Contains("revoked"));
}

TEST_CASE("gate: a question does not use up a one-off invite, and a volunteer does", "[access]") {
  const TemporaryFolder store;
  Door door(store.path());
  AccessRequest request;
  request.verb = AccessVerb::kCreateInvite;
  const auto made = parse_master_address(door.manage(request).invites.at(0).address);
  const std::string invite = to_text(made->secure->invite);
  const Observe question{kProtocolMin, kProtocolMax, "", invite};
  REQUIRE(std::holds_alternative<Standing>(door.say(question, {7, 1})));
  REQUIRE(std::holds_alternative<Standing>(door.say(question, {7, 2})));
  REQUIRE(std::holds_alternative<Standing>(door.say(hello(invite), {7, 3})));
  REQUIRE_THAT(refusal_of(door.say(question, {7, 1})).sentence, Contains("another one has used"));
  REQUIRE(std::holds_alternative<Standing>(door.say(hello(invite), {7, 3})));
}

TEST_CASE("gate: earlier lines are told when the address changes", "[access]") {
  const TemporaryFolder store;
  Door door(store.path());
  REQUIRE(door.gate->listening_at("h:7070").value().before.empty());
  REQUIRE(door.gate->listening_at("h:7071").value().before == "h:7070");
}

TEST_CASE("gate: an invite that expires ends the sessions of those who came by it", "[access]") {
  const TemporaryFolder store;
  Door door(store.path());
  AccessRequest request;
  request.verb = AccessVerb::kCreateInvite;
  request.expires_s = 10;
  const auto made = parse_master_address(door.manage(request).invites.at(0).address);
  door.standing = std::get<Standing>(door.say(hello(to_text(made->secure->invite))));
  door.gate->tick(kGateTime + 9);
  REQUIRE_FALSE(door.verdict.has_value());
  door.gate->tick(kGateTime + 10);
  REQUIRE(door.verdict.has_value());
  REQUIRE_FALSE(door.verdict->retry);
  REQUIRE_THAT(door.verdict->sentence, Contains("has expired"));
  // It is judged once.
  door.verdict.reset();
  door.gate->tick(kGateTime + 11);
  REQUIRE_FALSE(door.verdict.has_value());
}

TEST_CASE("gate: by one invite, strangers come as fast as others bear, and trusted ones at once",
          "[access]") {
  const TemporaryFolder store;
  Door door(store.path());
  const auto invite = [&](bool is_trusted) {
    AccessRequest request;
    request.verb = AccessVerb::kCreateInvite;
    request.is_reusable = true;
    request.is_trusted = is_trusted;
    const AccessAnswer answer = door.manage(request);
    return to_text(parse_master_address(answer.invites.at(0).address)->secure->invite);
  };
  const std::string own = invite(false);
  const std::string others = invite(false);
  const std::string trusted = invite(true);
  std::uint64_t key = 1;
  // Whatever becomes of the clock that people set.
  const auto comes = [&](const std::string& by, std::int64_t after) {
    const auto answer =
        door.gate->admit(KeyId{3, key++}, "10.0.0.1:5", hello(by), kGateTime - 3600 * after,
                         Instant(std::chrono::seconds(after)));
    if (std::holds_alternative<Standing>(answer)) return true;
    REQUIRE(refusal_of(answer).code == ErrorCode::kBusy);
    REQUIRE(refusal_of(answer).retry);
    return false;
  };
  int came = 0;
  for (int i = 0; i < 200; ++i) came += comes(own, 0) ? 1 : 0;
  REQUIRE(came == 64);
  REQUIRE(comes(others, 0));
  for (int i = 0; i < 200; ++i) REQUIRE(comes(trusted, 0));
  REQUIRE(comes(own, 1));
}

TEST_CASE("gate: a role takes what belongs to it", "[access]") {
  const TemporaryFolder store;
  Door door(store.path());
  AccessRequest request;
  request.protocol_min = kProtocolMin;
  request.protocol_max = kProtocolMax;
  request.invite = door.invite;
  request.verb = AccessVerb::kListPeers;
  REQUIRE_THAT(refusal_of(door.say(request)).sentence, Contains("administrator"));
  REQUIRE(std::get<Standing>(door.say(Observe{1, 99, "", door.invite})).role == Role::kVolunteer);
  const std::string owner = to_text(invite_key(*door.gate->key(), InviteId{}));
  REQUIRE_THAT(refusal_of(door.say(hello(owner))).sentence, Contains("for a volunteer"));
  REQUIRE(refusal_of(door.say(hello(""))).code == ErrorCode::kInvite);
  REQUIRE(refusal_of(door.say(Heartbeat{})).code == ErrorCode::kProtocol);
  request.invite = owner;
  request.protocol_min = request.protocol_max = kProtocolMax + 1;
  REQUIRE(refusal_of(door.say(request)).code == ErrorCode::kVersion);
}

TEST_CASE("gate: in plain text everybody is somebody else, and nobody administers", "[access]") {
  const auto gate = Gate::open_to_all();
  REQUIRE(gate->key() == nullptr);
  const auto come = [&](const std::string& peer, const Message& first) {
    return gate->admit(std::nullopt, peer, first, kGateTime, Instant{});
  };
  const auto ann = std::get<Standing>(come("10.0.0.1:5", hello("")));
  const auto bob = std::get<Standing>(come("10.0.0.1:6", hello("")));
  REQUIRE_FALSE(ann.identity == bob.identity);
  REQUIRE(std::get<Standing>(come("a:1", Observe{})).role == Role::kObserver);
  REQUIRE_THAT(refusal_of(come("a:1", AccessRequest{})).sentence, Contains("--insecure"));
}

TEST_CASE("gate: whose answers were false is kept out, by the next master too", "[access]") {
  const TemporaryFolder store;
  std::string invite;
  {
    Door door(store.path());
    invite = door.invite;
    REQUIRE(std::holds_alternative<Standing>(door.say(hello(invite))));
    REQUIRE(door.gate->convict({1, 2}, {}, "eve\n", "its answers were false"));
    REQUIRE_THAT(refusal_of(door.say(hello(invite))).sentence, Contains("answers were false"));
  }
  Door door(store.path());
  REQUIRE_THAT(refusal_of(door.say(hello(invite))).sentence, Contains("answers were false"));
  REQUIRE(std::holds_alternative<Standing>(door.say(hello(invite), {1, 3})));
}

TEST_CASE("gate: the line of a master is that of a trusted invite, whenever others were made",
          "[access]") {
  const TemporaryFolder store;
  for (int start = 0; start < 3; ++start) {
    Door door(store.path());
    REQUIRE(std::get<Standing>(door.say(hello(door.invite))).is_trusted);
    for (int i = 0; i < 5; ++i) door.create();
  }
}

TEST_CASE("gate: an invite by which several liars came is suspended, also for the next master",
          "[access]") {
  const TemporaryFolder store;
  std::string line;
  InviteId id{};
  {
    Door door(store.path());
    line = door.create();
    const auto come = [&](const KeyId& key) {
      return std::get<Standing>(door.say(hello(line), key));
    };
    id = come({1, 9}).invite;
    REQUIRE_FALSE(door.gate->convict({1, 2}, id, "eve", "lies").value());
    REQUIRE_FALSE(door.gate->convict({1, 3}, id, "eve", "lies").value());
    REQUIRE_FALSE(come({1, 9}).is_suspended);
    REQUIRE(door.gate->convict({1, 4}, id, "eve", "lies").value());
    REQUIRE(come({1, 9}).is_suspended);
    REQUIRE_FALSE(door.gate->convict({1, 5}, id, "eve", "lies").value());
    // Others are not blamed, nor are those for whom somebody vouches.
    REQUIRE_FALSE(std::get<Standing>(door.say(hello(door.invite), {1, 9})).is_suspended);
    REQUIRE_FALSE(std::get<Standing>(door.say(hello(door.create()), {1, 9})).is_suspended);
  }
  Door door(store.path());
  REQUIRE(std::get<Standing>(door.say(hello(line), {1, 9})).is_suspended);
}

TEST_CASE("gate: nobody elsewhere is blamed or believed for what a relay of strangers passes",
          "[access]") {
  const TemporaryFolder store;
  Door door(store.path());
  RelayHello relay;
  relay.protocol_min = kProtocolMin;
  relay.protocol_max = kProtocolMax;
  const KeyId ann{1, 9};
  const auto come = [&](const Standing& through, const KeyId& key) {
    return door.gate->admit_behind(through, key, kGateTime, Instant{});
  };
  const auto sent_away = [&](const Standing& through, const KeyId& key) {
    return std::holds_alternative<Message>(come(through, key));
  };

  relay.invite = door.invite;
  const auto trusted = std::get<Standing>(door.say(relay, {2, 1}));
  REQUIRE(std::get<Standing>(come(trusted, ann)).identity == ann);

  relay.invite = door.create();
  const auto of_strangers = std::get<Standing>(door.say(relay, {2, 2}));
  REQUIRE_FALSE(of_strangers.is_trusted);
  const auto behind = std::get<Standing>(come(of_strangers, ann));
  REQUIRE_FALSE(behind.is_trusted);
  REQUIRE(behind.invite == of_strangers.invite);
  REQUIRE(behind.identity != ann);
  REQUIRE(behind.identity == std::get<Standing>(come(of_strangers, ann)).identity);
  relay.invite = door.create();
  const auto others = std::get<Standing>(door.say(relay, {2, 3}));
  REQUIRE(behind.identity != std::get<Standing>(come(others, ann)).identity);

  // Convicted behind one relay: ann herself, and behind the others, is not.
  REQUIRE_FALSE(door.gate->convict(behind.identity, behind.invite, "ann", "lies").value());
  REQUIRE(sent_away(of_strangers, ann));
  REQUIRE_FALSE(sent_away(others, ann));
  REQUIRE(std::get<Standing>(door.say(hello(door.invite), ann)).is_trusted);
  // Banned herself, she is out behind all.
  REQUIRE_FALSE(door.gate->convict(ann, trusted.invite, "ann", "lies").value());
  REQUIRE(sent_away(others, ann));
  REQUIRE(sent_away(trusted, ann));

  // After more convictions who is new behind it is suspected, though it came before them.
  for (const std::uint64_t key : {3, 4}) {
    (void)door.gate->convict({1, key}, of_strangers.invite, "eve", "lies").value();
  }
  REQUIRE(std::get<Standing>(come(of_strangers, {1, 5})).is_suspended);
  // It cannot open connections without end.
  bool is_busy = false;
  for (std::uint64_t key = 100; key < 300 && !is_busy; ++key) is_busy = sent_away(others, {1, key});
  REQUIRE(is_busy);
}

}  // namespace gleaner

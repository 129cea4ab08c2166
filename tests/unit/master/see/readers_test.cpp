#include "master/see/readers.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "common/access/addresses.hpp"
#include "master/see/run_api.hpp"

namespace gleaner {
namespace {

constexpr const char* kName = "atlas-7";
constexpr const char* kPeer = "192.0.2.7:4000";
constexpr const char* kStore = "/srv/runs";
const std::vector<const char*> kPaths = {
    "/api/v1/run",           "/api/v1/shards",  "/api/v1/volunteers",  "/api/v1/events",
    "/api/v1/configuration", "/api/v1/history", "/api/v1/history.csv", "/metrics",
    "/api/v1/receipts"};

// A run in which every text names somebody, or a folder.
PageView named_view() {
  PageView view;
  view.version = 1;
  view.status.wait_owner = WaitOwner::kVolunteers;
  view.status.waits_for = std::string("the results of ") + kName;
  view.status.is_held_up = true;
  view.status.volunteers.resize(1);
  view.status.volunteers[0].name = kName;
  view.status.volunteers[0].peer = kPeer;
  view.status.shards.resize(1);
  view.status.shards[0].held_before = view.status.shards[0].moved_why = kName;
  view.status.gone = {{kName, kName, 1, 1}};
  view.accounts.resize(1);
  view.accounts[0].name = kName;
  view.banned = {{kName, kName, kName}};
  return view;
}

// A page that shows this run to other machines.
struct Page {
  PageAccess access{KeyPair::make(), {}};
  RunApi api{"a", InviteSecret{1}};

  Page() {
    RunFacts facts;
    facts.store = kStore;
    facts.settings = {{"run.store", kStore, "", "", false}, {"model.hidden", "128", "", "", true}};
    facts.join = std::string("gleaner-volunteer ") + kPeer;
    PageNews news;
    news.view = std::make_shared<PageView>(named_view());
    news.facts = std::make_shared<RunFacts>(facts);
    news.events = {{1, LogLevel::kInfo, kName, R"({"event":"log"})", false},
                   {2, LogLevel::kInfo, "checkpoint 4", R"({"event":"checkpoint"})", true}};
    news.listening = Listening{"", kPeer};
    api.take(std::move(news));
  }

  std::string invite(Role role) {
    Invite made;
    made.role = role;
    made.is_reusable = true;
    return to_text(invite_key(*access.key, add_invite(access.book, made).value()));
  }

  // Lets the page know of the invites.
  void begin() {
    PageNews news;
    news.access = std::make_shared<PageAccess>(access);
    api.take(std::move(news));
  }

  HttpReply ask(std::string_view path, const std::string& key) {
    HttpRequest request;
    request.path = path;
    request.page_key = key;
    request.query = [](const char*) { return std::string_view(); };
    return api.answer(request, {}, {});
  }
};

bool has(const HttpReply& reply, std::string_view text) {
  return reply.body && reply.body->find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("readers: from elsewhere nothing of the run is told without an invite", "[http]") {
  Page page;
  REQUIRE(page.ask(kPaths[0], "x").status == 503);  // the run has not begun
  page.begin();
  for (const std::string& key : {std::string(), std::string("x"), page_key_text(InviteSecret{1})}) {
    for (const char* const path : kPaths) REQUIRE(page.ask(path, key).status == 401);
    REQUIRE(page.ask("/nothing", key).status == 401);
    REQUIRE(page.ask("/", key).status == 200);  // the page's own files
    REQUIRE_FALSE(has(page.ask("/readyz", key), kName));
  }
}

TEST_CASE("readers: observers and volunteers get figures, without names and folders", "[http]") {
  Page page;
  const std::vector<std::string> keys = {page.invite(Role::kObserver),
                                         page.invite(Role::kVolunteer)};
  page.begin();
  for (const std::string& key : keys) {
    for (const char* const path : kPaths) {
      INFO(path);
      const HttpReply reply = page.ask(path, key);
      REQUIRE(reply.status == 200);
      for (const char* const secret : {kName, "192.0.2.7", kStore}) {
        REQUIRE_FALSE(has(reply, secret));
      }
    }
    REQUIRE(has(page.ask("/api/v1/configuration", key), "model.hidden"));
    REQUIRE(has(page.ask("/api/v1/events", key), "checkpoint 4"));
    REQUIRE(page.ask("/api/v1/join", key).status == 403);
  }
  PageView full;
  full.status.wait_owner = WaitOwner::kStore;
  full.status.waits_for = std::string("disk space: 1 GiB more for ") + kStore;
  REQUIRE(for_observers(full).status.waits_for == "disk space");
}

TEST_CASE("readers: administrators get names and addresses from elsewhere too", "[http]") {
  Page page;
  const std::string admin = page.invite(Role::kAdmin);
  page.begin();
  for (const char* const text : {kName, kPeer}) {
    REQUIRE(has(page.ask("/api/v1/volunteers", admin), text));
  }
  REQUIRE(has(page.ask("/api/v1/run", admin), kStore));
  REQUIRE(page.ask("/api/v1/join", admin).status == 200);
}

TEST_CASE("readers: a stream shows its reader's part, and ends with its invite", "[http]") {
  Page page;
  StreamPosition stream{.page_key = page.invite(Role::kObserver)};
  page.begin();
  const SharedText piece = page.api.next_piece(stream);
  REQUIRE(piece->find("checkpoint 4") != std::string::npos);
  REQUIRE(piece->find(kName) == std::string::npos);
  REQUIRE(page.api.next_piece(stream) == nullptr);
  REQUIRE_FALSE(stream.is_over);
  for (auto& [id, invite] : page.access.book.invites) invite.is_revoked = true;
  page.begin();
  REQUIRE(page.api.next_piece(stream) == nullptr);
  REQUIRE(stream.is_over);
}

}  // namespace gleaner

#include "master/see/run_api.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "common/access/addresses.hpp"
#include "common/bytes.hpp"
#include "schema/wire/codec.hpp"

namespace gleaner {
namespace {

using Json = nlohmann::json;

struct Asked {
  std::map<std::string, std::string> query;
  std::string accept;
  std::string last_event_id;
  std::string page_key{};
};

HttpReply ask(RunApi& api, std::string_view path, const Asked& asked = {}, Instant now = {}) {
  HttpRequest request;
  request.path = path;
  request.accept = asked.accept;
  request.last_event_id = asked.last_event_id;
  request.page_key = asked.page_key;
  request.is_local = true;
  request.query = [&](const char* key) -> std::string_view {
    const auto found = asked.query.find(key);
    return found == asked.query.end() ? std::string_view() : std::string_view(found->second);
  };
  return api.answer(request, {}, now);
}

const char* const kHostile = "<script>alert(1)</script>\"\\\n\x1b[2J\xff";

std::shared_ptr<const PageView> view(std::uint64_t version) {
  auto made = std::make_shared<PageView>();
  made->version = version;
  made->at = Instant(Micros(1));
  made->status.progress.stage = RunStage::kTraining;
  made->status.progress.epochs = 3;
  made->status.volunteers.resize(1);
  made->status.volunteers[0].name = kHostile;
  made->status.volunteers[0].peer = kHostile;
  made->status.volunteers[0].no_shards = kHostile;
  made->status.waits_for = kHostile;
  made->status.shards.resize(2);
  made->status.shards[0].state = LeaseState::kReady;
  made->status.shards[0].holder = 0;
  made->status.shards[1].held_before = kHostile;
  made->status.shards[1].moved_why = kHostile;
  made->status.gone = {{kHostile, kHostile, 1, 1}};
  made->accounts.resize(1);
  made->accounts[0].name = kHostile;
  return made;
}

PageNews events(std::size_t first, std::size_t count) {
  PageNews news;
  for (std::size_t i = 0; i < count; ++i) {
    news.events.push_back(
        {1, LogLevel::kInfo, fmt::format("number {}", first + i), "{\"event\":\"log\"}"});
  }
  return news;
}

std::size_t count_of(const std::string& text, const std::string& piece) {
  std::size_t count = 0;
  for (std::size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) {
    ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("run api: every path answers, before the run has begun too", "[http]") {
  RunApi api("a", {});
  for (const char* path : {"/api/v1/run", "/api/v1/shards", "/api/v1/volunteers", "/api/v1/events",
                           "/api/v1/configuration", "/api/v1/history", "/api/v1/openapi.json"}) {
    INFO(path);
    const HttpReply reply = ask(api, path);
    REQUIRE(reply.status == 200);
    REQUIRE(std::string(reply.type) == "application/json");
    REQUIRE_FALSE(Json::parse(*reply.body, nullptr, false).is_discarded());
  }
  REQUIRE(ask(api, "/healthz").status == 503);
  REQUIRE(ask(api, "/readyz").status == 503);
  REQUIRE(ask(api, "/metrics").status == 200);
  REQUIRE(ask(api, "/nothing").status == 404);
  REQUIRE(ask(api, "/../etc/passwd").status == 404);
  REQUIRE(ask(api, "/").body->starts_with("<!doctype html>"));
}

TEST_CASE("run api: hostile names are valid JSON, and cannot leave a text", "[http]") {
  RunApi api("a", {});
  PageNews news;
  news.view = view(1);
  news.events.push_back({1, LogLevel::kInfo, kHostile, "{\"event\":\"log\"}"});
  api.take(std::move(news));
  for (const char* path :
       {"/api/v1/run", "/api/v1/shards", "/api/v1/volunteers", "/api/v1/events"}) {
    INFO(path);
    const HttpReply reply = ask(api, path);
    REQUIRE_FALSE(Json::parse(*reply.body, nullptr, false).is_discarded());
    REQUIRE(reply.body->find('\x1b') == std::string::npos);
    REQUIRE(reply.body->find('\n') == std::string::npos);
  }
  const std::string metrics = *ask(api, "/metrics").body;
  REQUIRE(metrics.find('\x1b') == std::string::npos);
  std::istringstream lines(metrics);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    const bool is_metric = line.starts_with("gleaner_") || line.starts_with("# ");
    REQUIRE(is_metric);
  }
  StreamPosition position{.is_local = true};
  const SharedText piece = api.next_piece(position);
  REQUIRE(count_of(*piece, "\n\n") == 2);  // the run and the event: a newline ends no frame early
}

TEST_CASE("run api: openapi.json names the fields of volunteers and shards", "[http]") {
  RunApi api("a", {});
  PageNews news;
  news.view = view(1);
  api.take(std::move(news));
  const Json schemas = Json::parse(*ask(api, "/api/v1/openapi.json").body)["components"]["schemas"];
  const auto compare = [&](const char* path, const char* list, const char* schema) {
    INFO(schema);
    const Json described = schemas[schema]["properties"][list]["items"];
    const Json row = Json::parse(*ask(api, path).body)[list][0];
    REQUIRE(row.size() == described["properties"].size());
    REQUIRE(row.size() == described["required"].size());
    for (const auto& [name, value] : row.items()) REQUIRE(described["properties"].contains(name));
  };
  compare("/api/v1/volunteers", "here", "Volunteers");
  compare("/api/v1/shards", "shards", "Shards");
}

TEST_CASE("run api: addresses of volunteers are told with the page's key alone", "[http]") {
  RunApi api("a", InviteSecret{1});
  auto made = std::make_shared<PageView>(*view(1));
  made->status.volunteers[0].peer = "192.0.2.7:4000";
  PageNews news;
  news.view = made;
  api.take(std::move(news));
  const auto address = [&](const std::string& key) {
    Asked asked;
    asked.page_key = key;
    return Json::parse(*ask(api, "/api/v1/volunteers", asked).body)["here"][0]["address"];
  };
  REQUIRE(address(page_key_text(InviteSecret{1})) == "192.0.2.7:4000");
  REQUIRE(address("").is_null());
  REQUIRE(address(page_key_text(InviteSecret{2})).is_null());
}

TEST_CASE("run api: a stream's reader gets the newest run once, and each event once", "[http]") {
  RunApi api("a", {});
  StreamPosition position{.is_local = true};
  REQUIRE(api.next_piece(position) == nullptr);
  PageNews news = events(1, 3);
  news.view = view(1);
  api.take(std::move(news));
  api.take({view(2), {}, {}, {}, {}, {}});
  const SharedText piece = api.next_piece(position);
  REQUIRE(count_of(*piece, "event: run") == 1);
  REQUIRE(piece->find("\"version\":2") != std::string::npos);
  REQUIRE(count_of(*piece, "event: event") == 3);
  REQUIRE(api.next_piece(position) == nullptr);
  api.take(events(4, 1));
  REQUIRE(count_of(*api.next_piece(position), "number 4") == 1);
  REQUIRE(api.next_piece(position) == nullptr);
}

TEST_CASE("run api: receipts come round by round and page by page, and older rounds are let go",
          "[http]") {
  RunApi api("a", InviteSecret{1});
  const std::string key = page_key_text(InviteSecret{1});
  REQUIRE(Json::parse(*ask(api, "/api/v1/receipts").body)["last_round"].is_null());
  const auto round = [](RoundIndex number, std::size_t shards, WorkVerdict verdict) {
    std::vector<Receipt> receipts(shards);
    for (std::size_t i = 0; i < shards; ++i) {
      receipts[i].shard = ShardId{static_cast<std::uint32_t>(i)};
      receipts[i].holder_name = "h\x1b";
      receipts[i].verdict = verdict;
      if (receipts[i].verdict == WorkVerdict::kConfirmed) receipts[i].auditor = KeyId{1, 2};
    }
    return LoggedReceipts{number,
                          std::make_shared<const Receipts>(Receipts{std::move(receipts), {}})};
  };
  PageNews news;
  news.stored_receipts = std::make_shared<const std::vector<LoggedReceipts>>(
      std::vector{round(3, 5, WorkVerdict::kConfirmed), round(4, 5, WorkVerdict::kTrusted)});
  news.receipts = {round(5, 5, WorkVerdict::kUnaudited), round(5, 5, WorkVerdict::kConfirmed),
                   round(6, 5, WorkVerdict::kUnaudited)};
  api.take(std::move(news));
  const Json latest = Json::parse(*ask(api, "/api/v1/receipts", {{}, {}, {}, key}).body);
  REQUIRE(latest["round"] == 6);
  REQUIRE(latest["checked_up_to"] == 6);
  REQUIRE(latest["verdicts"]["unaudited"] == 5);
  REQUIRE(latest["receipts"][0]["auditor_key"].is_null());
  REQUIRE(latest["receipts"].size() == 5);
  for (const std::string& other : {std::string(), page_key_text(InviteSecret{2}), key + "a"}) {
    const Json sums = Json::parse(*ask(api, "/api/v1/receipts", {{}, {}, {}, other}).body);
    REQUIRE(sums["verdicts"] == latest["verdicts"]);
    REQUIRE(sums["receipts"].empty());
  }
  const Json page = Json::parse(
      *ask(api, "/api/v1/receipts", {{{"round", "5"}, {"first", "3"}, {"count", "9"}}, {}, {}, key})
           .body);
  REQUIRE(page["shards"] == 5);
  REQUIRE(page["receipts"].size() == 2);
  REQUIRE(page["receipts"][0]["shard"] == 3);
  REQUIRE(page["receipts"][0]["auditor_key"] == to_text(KeyId{1, 2}));
  for (const char* wrong : {"-1", "x", "0x1", "1 ", "99999999999999999999999"}) {
    INFO(wrong);
    REQUIRE(ask(api, "/api/v1/receipts", {{{"round", wrong}}, {}, {}}).status == 400);
  }
  REQUIRE(ask(api, "/api/v1/receipts", {{{"count", "0"}}, {}, {}}).status == 400);
  REQUIRE(ask(api, "/api/v1/receipts", {{{"count", "1001"}}, {}, {}}).status == 400);
  PageNews many;
  many.receipts = {round(7, kReceiptsKept - 5, WorkVerdict::kTrusted),
                   round(8, 1, WorkVerdict::kTrusted)};
  api.take(std::move(many));
  const Json cut = Json::parse(*ask(api, "/api/v1/receipts", {{{"round", "6"}}, {}, {}}).body);
  REQUIRE(cut["first_round"] == 7);
  REQUIRE(cut["checked_up_to"] == 9);
  REQUIRE(cut["shards"] == 0);
}

TEST_CASE("run api: readers of one view share its text", "[http]") {
  RunApi api("a", {});
  api.take({view(1), {}, {}, {}, {}, {}});
  StreamPosition first{.is_local = true}, second{.is_local = true};
  REQUIRE(api.next_piece(first).get() == api.next_piece(second).get());
  REQUIRE(ask(api, "/api/v1/shards").body.get() == ask(api, "/api/v1/shards").body.get());
  PageNews news;
  news.records.resize(1);
  news.records[0].checkpoint = 1;
  const SharedText before = ask(api, "/api/v1/history").body;
  REQUIRE(before.get() == ask(api, "/api/v1/history").body.get());
  api.take(std::move(news));
  REQUIRE(ask(api, "/api/v1/history").body->find("\"checkpoint\":[1]") != std::string::npos);
}

TEST_CASE("run api: a reader that falls behind misses the oldest events, and nothing grows",
          "[http]") {
  RunApi api("a", {});
  StreamPosition position{.is_local = true};
  api.take(events(1, kEventsKept + 500));
  std::string all;
  while (const SharedText piece = api.next_piece(position)) {
    REQUIRE(piece->size() < 20'000);
    all += *piece;
  }
  REQUIRE(count_of(all, "event: event") == kEventsKept);
  REQUIRE(all.find("number 500\"") == std::string::npos);
  REQUIRE(all.find("number 501\"") != std::string::npos);
}

TEST_CASE("run api: who comes back goes on after the last event it had, if it is of this life",
          "[http]") {
  RunApi api("a", {});
  api.take(events(1, 5));
  const auto listed = [&](const std::string& id) {
    return Json::parse(*ask(api, "/api/v1/events", {{}, {}, id}).body).at("events").size();
  };
  REQUIRE(listed("") == 5);
  REQUIRE(listed("a-3") == 2);
  REQUIRE(listed("a-5") == 0);
  REQUIRE(listed("a-999") == 5);  // no reader can have had that
  REQUIRE(listed("b-3") == 5);
  REQUIRE(listed("a-x") == 5);
  REQUIRE(listed("a-18446744073709551615") == 5);
  const HttpReply stream = ask(api, "/api/v1/events", {{}, "text/event-stream", "a-4"});
  REQUIRE(stream.stream);
  REQUIRE(stream.stream->event == 5);
}

TEST_CASE("run api: a history's range that makes no sense is refused", "[http]") {
  RunApi api("a", {});
  const auto status = [&](std::map<std::string, std::string> query) {
    return ask(api, "/api/v1/history", {std::move(query), {}, {}}).status;
  };
  REQUIRE(status({}) == 200);
  REQUIRE(status({{"points", "4000"}}) == 200);
  REQUIRE(status({{"to", "99999999999"}}) == 200);
  REQUIRE(status({{"points", "4001"}}) == 400);
  REQUIRE(status({{"points", "0"}}) == 400);
  REQUIRE(status({{"from", "-1"}}) == 400);
  REQUIRE(status({{"from", "5"}, {"to", "4"}}) == 400);
  REQUIRE(status({{"from", "1e3"}}) == 400);
}

TEST_CASE(
    "run api: health says when the run's thread was last heard, and readiness what is awaited",
    "[http]") {
  RunApi api("a", {});
  api.take({view(1), {}, {}, {}, {}, {}});
  const Instant soon(Micros(2));
  REQUIRE(ask(api, "/healthz", {}, soon).status == 200);
  REQUIRE(ask(api, "/readyz", {}, soon).status == 200);
  REQUIRE(ask(api, "/healthz", {}, soon + kViewAgeMax).status == 503);
  auto waiting = std::make_shared<PageView>(*view(2));
  waiting->status.is_held_up = true;
  waiting->status.waits_for = "a volunteer";
  api.take({waiting, {}, {}, {}, {}, {}});
  REQUIRE(ask(api, "/healthz", {}, soon).status == 200);
  REQUIRE(ask(api, "/readyz", {}, soon).status == 503);
  REQUIRE(ask(api, "/readyz", {}, soon).body->find("a volunteer") != std::string::npos);
}

TEST_CASE("page: its files are small, known by their content, and hold nothing from elsewhere",
          "[http]") {
  RunApi api("a", {});
  std::size_t bytes = 0;
  std::vector<PageAsset> assets(run_page_assets().begin(), run_page_assets().end());
  assets.insert(assets.end(), shared_page_assets().begin(), shared_page_assets().end());
  for (const PageAsset& asset : assets) {
    INFO(asset.path);
    REQUIRE_FALSE(asset.content.empty());
    REQUIRE_FALSE(ask(api, asset.path).etag.empty());
    if (asset.path == "/api/v1/openapi.json") continue;
    bytes += asset.content.size();
    for (const char* foreign : {"https://", "//cdn", "innerHTML", "eval(", "@import", "style=\""}) {
      REQUIRE(asset.content.find(foreign) == std::string_view::npos);
    }
  }
  REQUIRE(bytes < 200'000);
}

}  // namespace gleaner

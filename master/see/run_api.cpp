#include "master/see/run_api.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "master/see/event_json.hpp"
#include "master/see/view_json.hpp"

namespace gleaner {

namespace {

// Events are joined into pieces of about this size.
constexpr std::size_t kPieceBytes = std::size_t{16} << 10;
constexpr std::size_t kHistoryPieces = 600;
// Ranges of the history whose texts are kept until the next checkpoint.
constexpr std::size_t kHistoriesKept = 16;
constexpr std::uint64_t kReceiptsPerPage = 100, kReceiptsPerPageMax = 1000;

HttpReply shared_reply(const char* type, SharedText text) {
  HttpReply made;
  made.type = type;
  made.body = std::move(text);
  return made;
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

// The query's number for `key`, or `otherwise`; nullopt if it is no number.
std::optional<std::uint64_t> number_asked(const HttpRequest& request, const char* key,
                                          std::uint64_t otherwise) {
  const std::string_view text = request.query(key);
  return text.empty() ? std::optional(otherwise) : number(text);
}

RoundIndex checkpoint(std::uint64_t number) {
  constexpr std::uint64_t kLast = std::numeric_limits<RoundIndex>::max();
  return static_cast<RoundIndex>(std::min(number, kLast));
}

std::string frame(std::string_view event, std::string_view id, const std::string& json) {
  std::string text = fmt::format("event: {}\n", event);
  if (!id.empty()) text += fmt::format("id: {}\n", id);
  // The JSON of this program has no newline.
  return text + fmt::format("data: {}\n\n", json);
}

}  // namespace

RunApi::RunApi(std::string life, const InviteSecret& key) : life_(std::move(life)), readers_(key) {}

void RunApi::take(PageNews news) {
  if (news.facts) facts_ = std::move(news.facts);
  if (news.history) history_.replace(*news.history);
  for (const RoundRecord& record : news.records) history_.add(record);
  if (news.stored_receipts) {
    receipts_.clear();
    for (const LoggedReceipts& round : *news.stored_receipts) receipts_.add(round);
  }
  for (LoggedReceipts& round : news.receipts) {
    credit_.add(round, facts_->output_shards);
    receipts_.add(std::move(round));
  }
  for (const EventShown& event : news.events) {
    const std::string id = fmt::format("{}-{}", life_, first_event_ + events_.size());
    std::string json = event_shown_json(event, id);
    auto shared = std::make_shared<const std::string>(frame("event", id, json));
    events_.push_back({std::move(json), std::move(shared), event.is_for_observers});
    if (events_.size() > kEventsKept) {
      events_.pop_front();
      ++first_event_;
    }
  }
  if (news.listening) listening_ = *std::move(news.listening);
  if (news.access) readers_.admit_by(std::move(news.access));
  counts_ = news.counts;
  if (!news.view) return;
  view_ = std::move(news.view);
  ++version_;
  texts_.clear();
  observed_.reset();
}

const PageView& RunApi::view_of(Reader reader) {
  if (reader >= Reader::kHere) return *view_;
  if (!observed_) observed_ = for_observers(*view_);
  return *observed_;
}

RunFacts RunApi::facts_for(Reader reader) const {
  return reader < Reader::kHere ? for_observers(*facts_) : *facts_;
}

template <typename Make>
SharedText RunApi::cached(std::string_view path, Reader reader, Make make) {
  SharedText& text = texts_[{std::string(path), reader}];
  if (!text) text = std::make_shared<const std::string>(make());
  return text;
}

SharedText RunApi::run_frame(Reader reader) {
  return cached("a stream's run", reader, [&] {
    return frame("run", {}, run_json(view_of(reader), facts_for(reader), history_));
  });
}

SharedText RunApi::next_piece(StreamPosition& position) {
  const Reader reader = readers_.who(position.is_local, position.page_key);
  if (reader == Reader::kNobody) {
    position.is_over = true;  // its invite was revoked or has expired
    return nullptr;
  }
  position.event = std::max(position.event, first_event_);
  const std::uint64_t end = first_event_ + events_.size();
  const bool has_run = position.version < version_;
  if (!has_run && position.event >= end) return nullptr;
  position.version = version_;
  std::vector<SharedText> pieces;
  if (has_run) pieces.push_back(run_frame(reader));
  for (std::size_t bytes = 0; position.event < end && bytes < kPieceBytes; ++position.event) {
    const EventKept& event = events_[position.event - first_event_];
    if (reader < Reader::kHere && !event.is_for_observers) continue;
    pieces.push_back(event.frame);
    bytes += event.frame->size();
  }
  if (pieces.size() < 2) return pieces.empty() ? nullptr : pieces.front();
  std::string all;
  for (const SharedText& piece : pieces) all += *piece;
  return std::make_shared<const std::string>(std::move(all));
}

std::uint64_t RunApi::position_of(std::string_view event_id) const {
  if (!event_id.starts_with(life_ + "-")) return first_event_;
  const auto seen = number(event_id.substr(life_.size() + 1));
  const bool is_ours = seen && *seen < first_event_ + events_.size();
  return is_ours ? std::max(*seen + 1, first_event_) : first_event_;
}

HttpReply RunApi::events(const HttpRequest& request, Reader reader) {
  const std::uint64_t begin = position_of(request.last_event_id);
  if (request.accept.find("text/event-stream") != std::string_view::npos) {
    HttpReply made;
    made.type = "text/event-stream";
    made.stream = StreamPosition{0, begin, std::string(request.page_key), request.is_local};
    return made;
  }
  std::string text = "{\"events\":[";
  for (std::size_t i = begin - first_event_; i < events_.size(); ++i) {
    if (reader < Reader::kHere && !events_[i].is_for_observers) continue;
    text += (text.back() == '[' ? "" : ",") + events_[i].json;
  }
  return text_reply(200, kHttpJson, text + "]}");
}

HttpReply RunApi::history(const HttpRequest& request) {
  const auto from = number_asked(request, "from", 0);
  const auto to = number_asked(request, "to", std::numeric_limits<RoundIndex>::max());
  const auto pieces = number_asked(request, "points", kHistoryPieces);
  if (!from || !to || !pieces || *from > *to || *pieces == 0 || *pieces > kHistoryPiecesMax) {
    return text_reply(
        400, kHttpText,
        fmt::format("from and to are checkpoints, from no later than to, and points is a "
                    "number from 1 to {}.\n",
                    kHistoryPiecesMax));
  }
  if (histories_version_ != history_.version() || histories_.size() >= kHistoriesKept) {
    histories_.clear();
    histories_version_ = history_.version();
  }
  SharedText& text = histories_[fmt::format("{}-{}-{}", *from, *to, *pieces)];
  if (!text) {
    text = std::make_shared<const std::string>(
        history_json(history_, checkpoint(*from), checkpoint(*to), *pieces));
  }
  return shared_reply(kHttpJson, text);
}

HttpReply RunApi::join(Reader reader) const {
  if (listening_.join.empty()) {
    return text_reply(404, kHttpText, "No machine can join: no invite is open, or none listens.\n");
  }
  const bool is_secret = listening_.join.find("://") != std::string::npos;
  if (reader < (is_secret ? Reader::kAdmin : Reader::kHere)) {
    return text_reply(403, kHttpText,
                      "The line lets in whoever has it: open the page's whole address, which the "
                      "master prints.\n");
  }
  return text_reply(200, kHttpJson, join_json(listening_));
}

HttpReply RunApi::receipts(const HttpRequest& request, Reader reader) const {
  const RoundIndex latest = receipts_.rounds().empty() ? 0 : receipts_.rounds().back().round;
  const auto round = number_asked(request, "round", latest);
  const auto first = number_asked(request, "first", 0);
  const auto count = number_asked(request, "count", kReceiptsPerPage);
  if (!round || !first || !count || *count == 0 || *count > kReceiptsPerPageMax) {
    return text_reply(400, kHttpText,
                      fmt::format("round and first are numbers, of a round and a shard, and count "
                                  "is one from 1 to {}.\n",
                                  kReceiptsPerPageMax));
  }
  return text_reply(200, kHttpJson,
                    receipts_json(receipts_, checkpoint(*round), *first, *count,
                                  reader == Reader::kAdmin ? view_.get() : nullptr));
}

HttpReply RunApi::health(const HttpRequest& request, Instant now) {
  const bool is_alive = view_->version > 0 && now - view_->at <= kViewAgeMax;
  if (request.path == "/healthz") {
    return is_alive ? text_reply(200, kHttpText, "ok\n")
                    : text_reply(503, kHttpText,
                                 "The master's main thread has not been heard for long.\n");
  }
  const RunStatus& s = view_of(request.is_local ? Reader::kHere : Reader::kObserver).status;
  if (!is_alive || s.progress.stage == RunStage::kDone) {
    return text_reply(503, kHttpText, "No run is trained here.\n");
  }
  if (s.is_held_up) return text_reply(503, kHttpText, "The run waits for " + s.waits_for + ".\n");
  return text_reply(200, kHttpText, "ok\n");
}

// Tables of the present view.
HttpReply RunApi::table(const HttpRequest& request, Reader reader) {
  const std::string_view path = request.path;
  const auto made = [&](auto make) { return shared_reply(kHttpJson, cached(path, reader, make)); };
  if (path == "/api/v1/run") {
    return made([&] { return run_json(view_of(reader), facts_for(reader), history_); });
  }
  if (path == "/api/v1/shards") return made([&] { return shards_json(view_of(reader)); });
  if (path == "/api/v1/volunteers") {
    return made([&] {
      return volunteers_json(view_of(reader), facts_for(reader), credit_, reader == Reader::kAdmin);
    });
  }
  if (path == "/api/v1/configuration")
    return made([&] { return configuration_json(facts_for(reader)); });
  return text_reply(404, kHttpText, "There is nothing here; the page is at /.\n");
}

HttpReply RunApi::answer(const HttpRequest& request, const HttpCounts& counts, Instant now) {
  const std::string_view path = request.path;
  // These have no data of the run: everybody may have them.
  if (path == "/healthz" || path == "/readyz") return health(request, now);
  if (auto asset = asset_reply(path, run_page_assets())) return *std::move(asset);
  const Reader reader = readers_.who(request.is_local, request.page_key);
  if (reader == Reader::kNobody) return readers_.refusal(request.page_key);
  if (path == "/api/v1/events") return events(request, reader);
  if (path == "/api/v1/history") return history(request);
  if (path == "/api/v1/history.csv") {
    return text_reply(200, "text/csv; charset=utf-8", history_.csv());
  }
  if (path == "/api/v1/join") return join(reader);
  if (path == "/api/v1/receipts") return receipts(request, reader);
  if (path == "/metrics") {
    return text_reply(200, "text/plain; version=0.0.4; charset=utf-8",
                      run_metrics(view_of(reader), counts_, counts));
  }
  return table(request, reader);
}

}  // namespace gleaner

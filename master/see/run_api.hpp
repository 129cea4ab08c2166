// Answers each path of the page's server from the last published view. Belongs to the server's
// thread. A text is made once for each view and shared by all who ask for it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/access/standing.hpp"
#include "common/http/http_server.hpp"
#include "common/http/page_assets.hpp"
#include "master/see/history_series.hpp"
#include "master/see/page_view.hpp"
#include "master/see/readers.hpp"
#include "master/see/receipt_log.hpp"

namespace gleaner {

// Counted from the events of this process's life.
struct EventCounts {
  std::uint64_t joined = 0;
  std::uint64_t left_politely = 0, left_otherwise = 0;
  std::uint64_t warnings = 0, errors = 0;
  std::uint64_t rate_cuts = 0;
  std::uint64_t checkpoints = 0;
  std::uint64_t backups = 0, backup_failures = 0;
  std::int64_t backup_wall_seconds = 0;  // of the last one; 0: none in this process's life
};

// The run's metrics for Prometheus: base units, the run's name on every metric, a bounded number of
// volunteers by name, and other labels from short fixed lists. Help texts explain each metric;
// dashboards/ has rules and a dashboard.
std::string run_metrics(const PageView& view, const EventCounts& events, const HttpCounts& http);

// Files of the run's page and of the prediction page.
std::span<const PageAsset> run_page_assets();

// Events kept for later readers. A reader further behind misses the oldest.
inline constexpr std::size_t kEventsKept = 1000;
// An older view means that the master's I/O thread stands still.
inline constexpr Millis kViewAgeMax{30'000};

// News since the last time. An absent part has not changed.
struct PageNews {
  std::shared_ptr<const PageView> view;
  std::shared_ptr<const RunFacts> facts;
  std::shared_ptr<const std::vector<RoundRecord>> history;  // replaces the records
  std::vector<RoundRecord> records;
  std::vector<EventShown> events;
  EventCounts counts;
  // Like `history` and `records`.
  std::shared_ptr<const std::vector<LoggedReceipts>> stored_receipts{};
  std::vector<LoggedReceipts> receipts{};
  std::optional<Listening> listening{};  // its join line may hold an invite
  std::shared_ptr<const PageAccess> access{};
};

class RunApi {
 public:
  // `life` tells this process's event ids from other processes' ids. `key` is the page's.
  RunApi(std::string life, const InviteSecret& key);

  void take(PageNews news);

  [[nodiscard]] const Readers& readers() const { return readers_; }

  [[nodiscard]] const std::string& run_name() const { return view_->status.name; }

  [[nodiscard]] HttpReply answer(const HttpRequest& request, const HttpCounts& counts, Instant now);
  // The next piece of a stream: the run, if it has changed, and the events that the reader lacks.
  [[nodiscard]] SharedText next_piece(StreamPosition& position);

 private:
  [[nodiscard]] HttpReply table(const HttpRequest& request, Reader reader);
  [[nodiscard]] HttpReply events(const HttpRequest& request, Reader reader);
  [[nodiscard]] HttpReply history(const HttpRequest& request);
  [[nodiscard]] HttpReply join(Reader reader) const;
  [[nodiscard]] HttpReply receipts(const HttpRequest& request, Reader reader) const;
  [[nodiscard]] HttpReply health(const HttpRequest& request, Instant now);
  // The present view as this kind of reader sees it.
  [[nodiscard]] const PageView& view_of(Reader reader);
  [[nodiscard]] RunFacts facts_for(Reader reader) const;
  // The text that `make` gives for the present view, made once for each kind of reader.
  template <typename Make>
  [[nodiscard]] SharedText cached(std::string_view path, Reader reader, Make make);
  // The run as a stream's frame.
  [[nodiscard]] SharedText run_frame(Reader reader);
  [[nodiscard]] std::uint64_t position_of(std::string_view event_id) const;

  std::string life_;
  Readers readers_;
  Listening listening_;
  std::shared_ptr<const PageView> view_ = std::make_shared<const PageView>();
  std::optional<PageView> observed_;  // for observers; made when one asks
  std::shared_ptr<const RunFacts> facts_ = std::make_shared<const RunFacts>();
  HistorySeries history_;
  ReceiptLog receipts_;
  CreditTally credit_;
  EventCounts counts_;

  struct EventKept {
    std::string json;
    SharedText frame;
    bool is_for_observers = false;
  };

  std::deque<EventKept> events_;
  std::uint64_t first_event_ = 1;  // number of events_.front()
  std::uint64_t version_ = 0;      // of the run as streams show it
  std::map<std::pair<std::string, Reader>, SharedText> texts_;
  std::map<std::string, SharedText> histories_;  // by range
  std::uint64_t histories_version_ = 0;
};

}  // namespace gleaner

// Answers each path of the page's server from the last view that was published. Belongs to
// the server's thread. Texts are made once for each view, whoever asks for them, and shared.
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
};

// The run as Prometheus reads it: base units, and labels from short lists that are known beforehand
// (a volunteer's name is no label). Each explains itself in its help text; dashboards/ has rules
// and a dashboard.
std::string run_metrics(const PageView& view, const EventCounts& events, const HttpCounts& http);

// The files of the run's page, and of the page of a model that answers.
std::span<const PageAsset> run_page_assets();

// Events that are kept for readers that come later; who falls further behind misses the oldest.
inline constexpr std::size_t kEventsKept = 1000;
// A view that is older says that the master's own thread stands still.
inline constexpr Millis kViewAgeMax{30'000};

// News since the last time. A part that is absent has not changed.
struct PageNews {
  std::shared_ptr<const PageView> view;
  std::shared_ptr<const RunFacts> facts;
  std::shared_ptr<const std::vector<RoundRecord>> history;  // takes the place of what there was
  std::vector<RoundRecord> records;
  std::vector<EventShown> events;
  EventCounts counts;
  // As history and records.
  std::shared_ptr<const std::vector<LoggedReceipts>> stored_receipts{};
  std::vector<LoggedReceipts> receipts{};
  std::optional<Listening> listening{};  // its join line may hold an invite
  std::shared_ptr<const PageAccess> access{};
};

class RunApi {
 public:
  // `life` makes the ids of events differ from those of another process; `key` is the page's.
  RunApi(std::string life, const InviteSecret& key);

  void take(PageNews news);

  [[nodiscard]] const Readers& readers() const { return readers_; }

  [[nodiscard]] HttpReply answer(const HttpRequest& request, const HttpCounts& counts, Instant now);
  // The next piece of a stream: the run, when it has changed, and the events that are lacking.
  [[nodiscard]] SharedText next_piece(StreamPosition& position);

 private:
  [[nodiscard]] HttpReply table(const HttpRequest& request, Reader reader);
  [[nodiscard]] HttpReply events(const HttpRequest& request, Reader reader);
  [[nodiscard]] HttpReply history(const HttpRequest& request);
  [[nodiscard]] HttpReply join(Reader reader) const;
  // The answer that a tool gets by Observe, for tools that ask here.
  [[nodiscard]] HttpReply receipts(const HttpRequest& request, Reader reader) const;
  [[nodiscard]] HttpReply health(const HttpRequest& request, Instant now);
  // The present view as the reader sees it.
  [[nodiscard]] const PageView& view_of(Reader reader);
  [[nodiscard]] RunFacts facts_for(Reader reader) const;
  // The text that `make` gives for the present view; made once for each kind of reader.
  template <typename Make>
  [[nodiscard]] SharedText cached(std::string_view path, Reader reader, Make make);
  // The run at this moment, as a stream has it.
  [[nodiscard]] SharedText run_frame(Reader reader);
  [[nodiscard]] std::uint64_t position_of(std::string_view event_id) const;

  std::string life_;
  Readers readers_;
  Listening listening_;
  std::shared_ptr<const PageView> view_ = std::make_shared<const PageView>();
  std::optional<PageView> observed_;  // for observers, once one has asked
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
  std::uint64_t version_ = 0;      // of what a stream's reader is told of the run
  std::map<std::pair<std::string, Reader>, SharedText> texts_;
  std::map<std::string, SharedText> histories_;  // by their range
  std::uint64_t histories_version_ = 0;
};

}  // namespace gleaner

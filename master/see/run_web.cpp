#include "master/see/run_web.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/console/terminal.hpp"
#include "master/see/event_json.hpp"
#include "master/see/event_text.hpp"
#include "master/see/history_series.hpp"

namespace gleaner {
namespace {

// Ports to try when the requested port is taken.
constexpr std::uint16_t kPortsTried = 16;

// The configuration shows all choices of a recipe; the first line says enough here.
std::string first_line(std::string text) {
  const std::size_t end = text.find('\n');
  if (end != std::string::npos) text.resize(end);
  return text;
}

// Readers do not see secrets that admit a machine or show more, nor peers' addresses.
RunEvent for_everybody(RunEvent event) {
  if (auto* const listening = std::get_if<Listening>(&event)) {
    *listening = Listening{listening->address, ""};
  }
  if (auto* const page = std::get_if<PageServed>(&event)) page->key.clear();
  if (auto* const joined = std::get_if<VolunteerJoined>(&event)) joined->address.clear();
  if (auto* const line = std::get_if<LogLine>(&event); line != nullptr && !line->peer.empty()) {
    if (line->message.starts_with(line->peer)) {
      line->message.replace(0, line->peer.size(), "a connection");
    }
    line->peer.clear();
  }
  return event;
}

// Answers reveal the model itself, which observers do not get.
HttpReply may_not_predict() {
  return text_reply(403, kHttpText,
                    "From elsewhere the model answers administrators alone: open the page with "
                    "their invite, or on the master's machine.\n");
}

struct Count {
  EventCounts& counts;

  void operator()(const VolunteerJoined&) const { ++counts.joined; }

  void operator()(const VolunteerLeft& e) const {
    ++(e.polite ? counts.left_politely : counts.left_otherwise);
  }

  void operator()(const CheckpointSaved&) const { ++counts.checkpoints; }

  void operator()(const RatesCut&) const { ++counts.rate_cuts; }

  void operator()(const BackedUp&) const {
    ++counts.backups;
    counts.backup_wall_seconds = wall_seconds();
  }

  void operator()(const LogLine& e) const {
    if (e.kind == kBackupFailed) ++counts.backup_failures;
    if (e.level == LogLevel::kWarning) ++counts.warnings;
    if (e.level == LogLevel::kError) ++counts.errors;
  }

  template <typename Other>
  void operator()(const Other& /*event*/) const {}
};

}  // namespace

RunWeb::RunWeb(const ModelConfig& model, std::unique_ptr<PredictDesk> desk,
               std::optional<ServedProgram> program)
    : plan_(model),
      api_(fmt::format("{:x}", wall_seconds()), key_),
      desk_(std::move(desk)),
      predict_(*desk_),
      program_(std::move(program)) {}

bool RunWeb::may_predict(bool is_local, std::string_view key) const {
  return api_.readers().who(is_local, key) >= Reader::kHere;
}

HttpReply RunWeb::answer(const HttpRequest& request) {
  if (program_ && api_.readers().who(request.is_local, request.page_key) != Reader::kNobody) {
    if (auto reply = program_->answer(request)) return *std::move(reply);
  }
  if (auto reply = predict_.answer(request)) {
    const bool may = may_predict(request.is_local, request.page_key);
    return may ? *std::move(reply) : may_not_predict();
  }
  HttpReply reply = api_.answer(request, server_->counts(), monotonic_now());
  if (request.path == "/metrics") {
    reply.body =
        std::make_shared<const std::string>(*reply.body + predict_.metrics(api_.run_name()));
  }
  return reply;
}

Result<std::unique_ptr<RunWeb>> RunWeb::open(const HostPort& address, const ModelConfig& model,
                                             std::unique_ptr<PredictDesk> desk,
                                             std::optional<ServedProgram> program,
                                             bool takes_invites) {
  std::unique_ptr<RunWeb> web(new RunWeb(model, std::move(desk), std::move(program)));
  RunWeb* const self = web.get();
  HttpHandler handler;
  handler.on_wake = [self] {
    PageNews news;
    {
      const std::lock_guard guard(self->lock_);
      news = std::exchange(self->news_, {});
      self->news_.counts = news.counts;
    }
    self->api_.take(std::move(news));
  };
  handler.answer = [self](const HttpRequest& request) { return self->answer(request); };
  self->predict_.handle_posts(handler);
  handler.post = [self, predict = std::move(handler.post)](HttpPost post) {
    if (!self->may_predict(post.is_local, post.page_key)) return post.answer(may_not_predict());
    predict(std::move(post));
  };
  handler.next_piece = [self](StreamPosition& position) { return self->api_.next_piece(position); };
  HostPort tried = address;
  HttpReach reach = is_loopback(address.host) ? HttpReach::kThisMachine : HttpReach::kNetwork;
  if (takes_invites) reach = HttpReach::kAnyName;  // readers under other names show one
  Result<std::unique_ptr<HttpServer>> server = HttpServer::prepare(tried, handler, reach);
  for (std::uint16_t i = 1; !server && address.port != 0 && i < kPortsTried; ++i) {
    tried.port = static_cast<std::uint16_t>(address.port + i);
    server = HttpServer::prepare(tried, handler, reach);
  }
  if (!server) return server.error();
  web->server_ = std::move(*server);
  web->has_other_port_ = address.port != 0 && web->server_->address().port != address.port;
  web->server_->start();
  return web;
}

PageServed RunWeb::served() const {
  HostPort here = server_->address();
  PageServed served;
  if (!is_loopback(here.host)) {
    const bool is_any = is_any_address(here.host);
    served.others = "http://" + (is_any ? fmt::format("ADDRESS:{}", here.port) : to_text(here));
    if (is_any) here.host = "127.0.0.1";
  }
  served.url = "http://" + to_text(here);
  // At an address of the network, readers on this machine show an invite too.
  if (is_loopback(here.host)) served.key = page_key_text(key_);
  served.has_other_port = has_other_port_;
  if (program_) {
    served.program = PageServed::Program{served.url + ServedProgram::kPath, program_->machine(),
                                         program_->sha256()};
  }
  return served;
}

void RunWeb::begin(RunFacts facts, std::vector<RoundRecord> history,
                   std::vector<LoggedReceipts> receipts) {
  facts.program = served().program;
  last_record_ = history.empty() ? RoundRecord() : history.back();
  auto shared_facts = std::make_shared<const RunFacts>(std::move(facts));
  auto shared_history = std::make_shared<const std::vector<RoundRecord>>(std::move(history));
  auto shared_receipts = std::make_shared<const std::vector<LoggedReceipts>>(std::move(receipts));
  const std::lock_guard guard(lock_);
  news_.facts = std::move(shared_facts);
  news_.stored_receipts = std::move(shared_receipts);
  news_.receipts.clear();
  news_.history = std::move(shared_history);
  news_.records.clear();
}

void RunWeb::notice(const Notice& notice) {
  if (const auto* saved = std::get_if<CheckpointSaved>(&notice)) {
    RoundRecord record = saved->record;
    record.wall_seconds = wall_seconds();
    add_record(std::move(record));
    if (!saved->receipts) return;
    std::uint64_t examples = 0;
    const RoundIndex round = saved->record.round();
    for (BatchIndex batch = plan_.round_begin(round); batch < plan_.round_end(round); ++batch) {
      examples += plan_.examples_in(batch);
    }
    const std::lock_guard guard(lock_);
    news_.receipts.push_back({round, saved->receipts, examples});
  } else if (const auto* evaluated = std::get_if<Evaluated>(&notice)) {
    RoundRecord record = last_record_;
    record.add(evaluated->evaluation);
    add_record(std::move(record));
  }
}

void RunWeb::admit_by(std::shared_ptr<const PageAccess> access) {
  const std::lock_guard guard(lock_);
  news_.access = std::move(access);
}

void RunWeb::add_record(RoundRecord record) {
  last_record_ = record;
  const std::lock_guard guard(lock_);
  news_.records.push_back(std::move(record));
}

void RunWeb::event(const RunEvent& event) {
  constexpr TextStyle kPlain{false, true};
  std::visit(Count{counts_}, event);
  const RunEvent told = for_everybody(event);
  // Only the first line of the join text is free of secrets.
  const bool is_listening = std::holds_alternative<Listening>(event);
  EventShown shown{wall_seconds(), importance(event),
                   first_line(event_line(is_listening ? event : told, kPlain)), event_json(told),
                   is_for_observers(event)};
  {
    const std::lock_guard guard(lock_);
    if (news_.events.size() >= kEventsKept) news_.events.erase(news_.events.begin());
    news_.events.push_back(std::move(shown));
    news_.counts = counts_;
    if (const auto* listening = std::get_if<Listening>(&event)) news_.listening = *listening;
  }
  server_->wake();
}

void RunWeb::measure_bytes(PageView& view) {
  down_.add(view.at, view.status.progress.unit_bytes_down);
  up_.add(view.at, view.status.progress.unit_bytes_up);
  view.bytes_per_second_down = down_.per_second().value_or(-1);
  view.bytes_per_second_up = up_.per_second().value_or(-1);
}

void RunWeb::publish(RunStatus status, std::vector<AccountRecord> accounts,
                     std::vector<BanShown> banned, Instant now) {
  PageView view;
  view.banned = std::move(banned);
  view.status = std::move(status);
  view.accounts = std::move(accounts);
  view.at = now;
  if (view.status.progress.stage == RunStage::kDone) {
    // The run is over, and waits for nothing.
    view.status.wait_owner = WaitOwner::kNobody;
    view.status.is_held_up = false;
    view.status.progress.eta_seconds = -1;
  }
  measure_bytes(view);
  time_.observe(time_use(view.status, plan_), now);
  for (const ShardEntry& shard : view.status.shards) {
    view.is_committing.push_back(shard.state == LeaseState::kReady &&
                                 shard.committed < plan_.round_count() &&
                                 shard.next_batch >= plan_.round_end(shard.committed));
  }
  hand_in(std::move(view));
}

void RunWeb::publish_paused(const std::string& reason, Instant now) {
  PageView view = last_;
  view.at = now;
  view.status.waits_us += view.status.wait_owner == WaitOwner::kStore
                              ? static_cast<std::uint64_t>((now - last_.at).count())
                              : 0;
  view.status.wait_owner = WaitOwner::kStore;
  view.status.is_held_up = true;
  view.status.waits_for = fmt::format("{}: {}", kDiskSpace, reason);
  time_.observe(TimeUse::kStore, now);
  hand_in(std::move(view));
}

void RunWeb::hand_in(PageView view) {
  view.version = ++version_;
  view.wall_seconds = wall_seconds();
  view.checkpoint_wall_seconds = last_record_.wall_seconds;
  view.time_all = time_.all();
  view.time_recent = time_.recent();
  published_ = view.at;
  last_ = view;
  auto shared = std::make_shared<const PageView>(std::move(view));
  {
    const std::lock_guard guard(lock_);
    news_.view = std::move(shared);
    news_.counts = counts_;
  }
  server_->wake();
}

}  // namespace gleaner

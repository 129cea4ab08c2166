#include "volunteer/lender.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <asio/post.hpp>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "common/console/terminal.hpp"
#include "volunteer/status_line.hpp"
#include "volunteer/volunteer_status.hpp"

namespace gleaner::volunteer {
namespace {

constexpr std::size_t kSaidMax = 200;
constexpr Millis kHandOverGrace{600'000};
constexpr Millis kSuspendGrace{4'000};
constexpr Millis kSave{60'000};
constexpr Millis kPublish{1'000};

std::string clock_text(std::int64_t wall_seconds) {
  return fmt::format("{:%H:%M}", fmt::localtime(static_cast<std::time_t>(wall_seconds)));
}

const char* when_name(When when) {
  switch (when) {
    case When::kAlways:
      return "always";
    case When::kIdle:
      return "idle";
    case When::kSchedule:
      return "schedule";
  }
  return "unknown";
}

template <typename T>
nlohmann::ordered_json or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

std::string dump(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// "works for the run birds: Names birds by their songs."
std::string welcome_words(const Snapshot& snapshot) {
  // A store named "run" gives its run that name.
  return "works for the run" + (snapshot.run == "run" ? "" : " " + snapshot.run) +
         (snapshot.purpose.empty() ? "" : ": " + snapshot.purpose);
}

nlohmann::ordered_json run_json(const std::optional<RunNews>& news) {
  if (!news) return {};
  return {{"round", news->round},
          {"rounds", news->rounds},
          {"epoch", news->epoch},
          {"epochs", news->epochs},
          {"volunteers", news->volunteers},
          {"p_at_1", news->precision_at_1 < 0 ? nlohmann::ordered_json()
                                              : nlohmann::ordered_json(news->precision_at_1)}};
}

}  // namespace

Lender::Lender(asio::io_context& io, Client& client, LogSink& log, Options options)
    : io_(io),
      client_(client),
      log_(log),
      options_(std::move(options)),
      pause_policy_(options_.limits.rules),
      ledger_(options_.state_folder, day_name(wall_seconds())),
      clock_(io) {
  std::string trouble = "there is no folder for it";
  for (const std::string& path : options_.control_paths) {
    auto server = ControlServer::listen(
        io, path, [this](const std::string& request) { return answer(request); });
    if (server) {
      servers_.push_back(std::move(*server));
    } else {
      trouble = server.error().message;
    }
  }
  if (servers_.empty()) {
    log_.log(LogLevel::kWarning, "no control socket: " + trouble +
                                     "; status and pause take one: give --control another path");
  }
  if (options_.page) open_page(*options_.page);
  save_every_minute();
  Watch::Options watch;
  watch.root = options_.root;
  watch.environment = [](const char* name) {
    return std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets any
  };
  watch.report = [this, alive = std::weak_ptr<int>(alive_)](Readings readings) {
    asio::post(io_, [this, alive, readings = std::move(readings)]() mutable {
      if (!alive.expired()) weigh(std::move(readings));
    });
  };
  watch_ = std::make_unique<Watch>(std::move(watch));
}

Lender::~Lender() {
  page_.reset();
  count();
  watch_.reset();
  alive_.reset();
  (void)ledger_.save();
}

void Lender::note(const Snapshot& snapshot, std::uint64_t held_bytes) {
  const bool is_finished = snapshot.service && !snapshot_.service;
  const bool has_thanks = snapshot.thanks && snapshot.thanks != snapshot_.thanks;
  const bool has_refused = snapshot.thanks_refused != snapshot_.thanks_refused;
  const bool is_other_run = snapshot.run != snapshot_.run || snapshot.purpose != snapshot_.purpose;
  snapshot_ = snapshot;
  if (is_other_run && !snapshot.run.empty()) say(welcome_words(snapshot), LogLevel::kInfo);
  held_bytes_ = held_bytes;
  if (has_refused && !snapshot.thanks_refused.empty()) {
    log_.log(LogLevel::kWarning, "the master's thanks are not kept: " + snapshot.thanks_refused);
  }
  if (is_finished) say(thanks_text(*snapshot.service));
  Result<void> kept;
  if (has_thanks) {
    kept = keep_thanks(options_.state_folder, *snapshot.thanks);
  } else if (is_finished) {
    kept = keep_thanks(options_.state_folder, options_.master, said_.back());
  }
  if (!kept) log_.log(LogLevel::kWarning, "the thanks are not kept: " + kept.error().message);
  const bool is_suspending = verdict_ && verdict_->reason == PauseReason::kSuspending;
  if (is_suspending && !snapshot.is_connected && held_bytes == 0) watch_->allow_sleep();
  if (page_ && monotonic_now() - published_ >= kPublish) publish();
}

void Lender::open_page(const VolunteerPage::Options& options) {
  auto page =
      VolunteerPage::open(options, [this, alive = std::weak_ptr<int>(alive_)](
                                       std::string request, std::function<void(std::string)> give) {
        asio::post(io_, [this, alive, request = std::move(request), give = std::move(give)] {
          if (!alive.expired()) give(answer(request));
        });
      });
  if (!page) {
    log_.log(
        LogLevel::kWarning,
        page.error().message + "; the volunteer goes on without it: --http names another address");
    return;
  }
  page_ = std::move(*page);
  log_.log(LogLevel::kInfo, "see and steer this volunteer at " + page_->url());
}

void Lender::publish() {
  count();
  published_ = monotonic_now();
  Json json = status();
  json.erase("uses");
  page_->publish(dump(json));
}

void Lender::count() {
  const Client::Traffic& traffic = client_.traffic();
  ledger_.note({snapshot_.examples, traffic.up_bytes, traffic.down_bytes},
               day_name(wall_seconds()));
  const Instant now = monotonic_now();
  examples_.add(now, snapshot_.examples);
  up_.add(now, traffic.up_bytes);
  down_.add(now, traffic.down_bytes);
}

void Lender::weigh(Readings readings) {
  count();
  readings.up_bytes = ledger_.today().up_bytes;
  readings.down_bytes = ledger_.today().down_bytes;
  readings.held_bytes = held_bytes_;
  readings_ = std::move(readings);
  const bool is_first = !verdict_;
  apply(pause_policy_.decide(readings_, monotonic_now()));
  if (is_first && on_first_verdict) on_first_verdict();
}

void Lender::apply(Verdict verdict) {
  // Only a new reason is news. Its details change all the time, and are in the status.
  const bool is_news = !verdict_ || verdict_->reason != verdict.reason;
  verdict_ = std::move(verdict);
  if (!is_news) return;
  watch_->set_hurry(verdict_->works());
  if (verdict_->works()) {
    say("works: " + verdict_->why);
    client_.resume();
    return;
  }
  paused_at_ = wall_seconds();
  const Millis keep = options_.limits.keep_shards;
  const bool keeps = verdict_->ends_within(keep, monotonic_now());
  client_.pause(verdict_->pause_words(), keeps ? keep : Millis(0),
                verdict_->reason == PauseReason::kSuspending ? kSuspendGrace : kHandOverGrace);
  say(pause_sentence(*verdict_));
}

std::string Lender::pause_sentence(const Verdict& verdict) const {
  if (!verdict.is_asked()) return verdict.pause_words();
  std::string ends = verdict.ends;
  if (verdict.until) {
    const Micros left = *verdict.until - monotonic_now();
    ends = clock_text(wall_seconds() + std::chrono::ceil<std::chrono::seconds>(left).count());
  }
  return fmt::format("{} since {}, until {}", verdict.pause_words(), clock_text(paused_at_), ends);
}

void Lender::save_every_minute() {
  clock_.after(kSave, [this] {
    if (const auto saved = ledger_.save(); !saved) {
      log_.log(LogLevel::kWarning, "the day's figures are not kept: " + saved.error().message +
                                       "; a restart forgets them: give --cache another folder");
    }
    save_every_minute();
  });
}

void Lender::say(const std::string& sentence, LogLevel level) {
  said_.push_back(local_time_words(wall_seconds()) + " " + sentence);
  if (said_.size() > kSaidMax) said_.pop_front();
  log_.log(level, sentence);
}

std::string Lender::answer(const std::string& request) {
  const Json json = Json::parse(request, nullptr, false);
  const auto refuse = [](const std::string& why) { return Json{{"error", why}}.dump(); };
  if (!json.is_object()) return refuse("a request is an object of JSON");
  const std::string verb = json.contains("verb") && json["verb"].is_string()
                               ? json["verb"].get<std::string>()
                               : std::string();
  const auto number = [&](const char* name) -> std::optional<std::int64_t> {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
    if (!json.contains(name) || !json[name].is_number_unsigned()) return std::nullopt;
    return static_cast<std::int64_t>(std::min(json[name].get<std::uint64_t>(), kMost));
  };
  const Instant now = monotonic_now();
  if (verb == "session") {
    const auto idle_ms = number("idle_ms");
    if (!idle_ms || !json.contains("session") || !json["session"].is_string()) {
      return refuse("session takes session and idle_ms");
    }
    watch_->reports().report(printable(json["session"].get<std::string>()), now - Millis(*idle_ms),
                             now);
    return "{}";
  }
  if (verb == "log") {
    std::vector<std::string> lines = kept_thanks(options_.state_folder);
    lines.insert(lines.end(), said_.begin(), said_.end());
    return dump(Json{{"log", lines}});
  }
  if (verb == "pause") {
    pause_policy_.ask_pause();
  } else if (verb == "resume") {
    pause_policy_.ask_resume();
  } else if (verb == "snooze") {
    const auto seconds = number("seconds");
    if (!seconds || *seconds == 0) return refuse("snooze takes seconds, at least 1");
    pause_policy_.ask_snooze(now +
                             std::chrono::duration_cast<Micros>(std::chrono::seconds(*seconds)));
  } else if (verb == "set") {
    if (auto changed = change(json); !changed) return refuse(changed.error().message);
  } else if (verb == "finish") {
    say("was asked to finish");
    client_.stop("its owner asked it to finish", kHandOverGrace);
  } else if (verb != "status") {
    return refuse(verb.empty() ? "a request names a verb" : "there is no verb " + printable(verb));
  }
  if (verdict_) apply(pause_policy_.decide(readings_, now));
  count();
  if (page_) publish();
  Json told = status();
  told["page"] = page_ ? Json(page_->url()) : Json();
  return dump(told);
}

Result<void> Lender::change(const Json& request) {
  std::vector<std::string> flags;
  std::string words;
  for (const Json& flag : request.value("flags", Json::array())) {
    if (flag.is_string()) flags.push_back(flag.get<std::string>());
    if (flag.is_string()) words += " " + printable(flags.back());
  }
  if (flags.empty()) return Error{ErrorCode::kInvalidArgument, "set takes flags"};
  Result<Limits> limits = options_.change(flags);
  if (!limits) return limits.error();
  options_.limits = std::move(*limits);
  pause_policy_.set_rules(options_.limits.rules);
  say("was set to" + words, LogLevel::kInfo);
  return {};
}

std::string Lender::doing(const Verdict& verdict) const {
  if (snapshot_.service) return thanks_text(*snapshot_.service);
  const bool is_leaving = snapshot_.phase == Snapshot::Phase::kLeaving;
  if (!verdict.works() && (verdict.is_asked() || !is_leaving)) return pause_sentence(verdict);
  return snapshot_.sentence + (is_leaving ? "" : " (" + verdict.why + ")");
}

Lender::Json Lender::status() const {
  const Instant now = monotonic_now();
  const auto seconds = [](Micros duration) { return static_cast<double>(duration.count()) / 1e6; };
  const Verdict verdict = verdict_.value_or(
      Verdict{PauseReason::kUnknownUse, "it has not looked at the machine yet", "it has", {}});
  Json uses = Json::array();
  for (const UseReading& use : readings_.uses) {
    uses.push_back({{"source", use.source},
                    {"seconds_ago", use.last_use ? Json(seconds(now - *use.last_use)) : Json()},
                    {"detail", use.detail}});
  }
  Json shards = Json::array();
  for (const ShardId shard : snapshot_.shards) shards.push_back(raw(shard));
  const DayFigures& today = ledger_.today();
  const Client::Traffic& traffic = client_.traffic();
  return {{"sentence", doing(verdict)},
          {"name", options_.name},
          {"verdict",
           {{"works", verdict.works()},
            {"reason", pause_reason_name(verdict.reason)},
            {"why", verdict.why},
            {"ends", verdict.ends},
            {"until_seconds",
             verdict.until ? Json(std::max(0.0, seconds(*verdict.until - now))) : Json()}}},
          {"when", when_name(pause_policy_.when(readings_))},
          {"threads", options_.limits.threads},
          {"master", options_.master},
          {"run", run_json(snapshot_.news)},
          {"run_name", snapshot_.run},
          {"purpose", snapshot_.purpose},
          {"shards", shards},
          {"loading", snapshot_.loading},
          {"held_bytes", held_bytes_},
          {"today",
           {{"examples", today.examples},
            {"up_bytes", today.up_bytes},
            {"down_bytes", today.down_bytes}}},
          {"life",
           {{"examples", snapshot_.examples},
            {"units", snapshot_.units},
            {"up_bytes", traffic.up_bytes},
            {"down_bytes", traffic.down_bytes}}},
          {"rates",
           {{"examples_per_second", or_null(examples_.per_second())},
            {"up_bytes_per_second", or_null(up_.per_second())},
            {"down_bytes_per_second", or_null(down_.per_second())}}},
          {"uses", uses},
          {"machine",
           {{"confinement", readings_.confinement},
            {"on_battery", or_null(readings_.on_battery)},
            {"metered", or_null(readings_.is_metered)},
            {"celsius", or_null(readings_.celsius)},
            {"memory_bytes", or_null(readings_.memory_bytes)},
            {"cpu_pressure", or_null(readings_.cpu_pressure)},
            {"memory_pressure", or_null(readings_.memory_pressure)}}}};
}

}  // namespace gleaner::volunteer

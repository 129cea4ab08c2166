#include "volunteer/status_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "volunteer/lend/work_record.hpp"

namespace gleaner {
namespace {

using Json = nlohmann::ordered_json;

constexpr Millis kTerminalPace{100};
// Beyond this count the numbers tell nobody anything.
constexpr std::size_t kShardsNamed = 12;

const char* activity_name(VolunteerActivity activity) {
  constexpr const char* kNames[] = {
      "starting",   "connecting", "retrying",     "joining", "waiting", "loading",  "training",
      "evaluating", "committing", "handing_over", "paused",  "refused", "finished", "stopped"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(VolunteerActivity::kStopped) + 1);
  return kNames[static_cast<std::size_t>(activity)];
}

std::string shards_shown(const std::vector<std::uint32_t>& shards) {
  if (shards.empty()) return "no shards";
  const std::string named = ranges_shown(shards);
  const auto commas = static_cast<std::size_t>(std::count(named.begin(), named.end(), ','));
  if (commas >= kShardsNamed) return fmt::format("{} shards", shards.size());
  return (shards.size() == 1 ? "shard " : "shards ") + named;
}

// ": because", or nothing.
std::string because(const std::string& reason, const char* before = ": ") {
  return reason.empty() ? std::string() : before + printable(reason);
}

// The position that is news: the epoch, not the round.
std::string epoch_shown(const VolunteerStatus& s) {
  return s.epochs == 0 ? std::string() : fmt::format("epoch {} of {}", s.epoch, s.epochs);
}

// Details of the run, for the line that is updated.
std::string details(const VolunteerStatus& s) {
  std::vector<std::string> facts;
  if (s.rounds > 0) facts.push_back(fmt::format("round {} of {}", s.round, s.rounds));
  if (s.epochs > 0) facts.push_back(epoch_shown(s));
  if (s.examples_per_second >= 0) {
    const double speed = std::clamp(s.examples_per_second, 0.0, 1e15);
    facts.push_back(grouped(static_cast<std::uint64_t>(std::llround(speed))) + " examples/s");
  }
  if (s.p_at_1 >= 0) facts.push_back(fmt::format("P@1 {:.3f}", s.p_at_1));
  if (s.volunteers > 0) {
    facts.push_back(fmt::format("{} volunteer{}", s.volunteers, s.volunteers == 1 ? "" : "s"));
  }
  if (s.memory_bytes > 0) facts.push_back(bytes_shown(s.memory_bytes) + " held");
  std::string text;
  for (const std::string& fact : facts) text += (text.empty() ? " (" : ", ") + fact;
  return text.empty() ? text : text + ")";
}

bool is_at_work(VolunteerActivity activity) {
  return activity == VolunteerActivity::kTraining || activity == VolunteerActivity::kEvaluating ||
         activity == VolunteerActivity::kCommitting || activity == VolunteerActivity::kLoading ||
         activity == VolunteerActivity::kWaiting;
}

// Why nothing happens until the master is back; an attempt and the pause before it read the same,
// so that waiting for hours is one line.
std::string absent_master(const VolunteerStatus& s) {
  return fmt::format("waiting for the master at {}{}", s.master, because(s.reason));
}

// The sentence without its details.
std::string sentence(const VolunteerStatus& s) {
  if (!s.sentence.empty()) return printable(s.sentence);
  switch (s.activity) {
    case VolunteerActivity::kStarting:
      return "starting: measuring this machine";
    case VolunteerActivity::kConnecting:
      return s.reason.empty() ? "connecting to the master at " + s.master : absent_master(s);
    case VolunteerActivity::kRetrying:
      return absent_master(s);
    case VolunteerActivity::kJoining:
      return fmt::format("joining the run of {}: waiting to be let in", s.master);
    case VolunteerActivity::kWaiting:
      return "waiting for work" + because(s.reason, ": the run waits for ");
    case VolunteerActivity::kLoading:
      return "fetching " + shards_shown(s.shards) + " to train them";
    case VolunteerActivity::kTraining:
      if (!s.reason.empty()) {
        return "holding " + shards_shown(s.shards) + because(s.reason, ": the run waits for ");
      }
      return "training " + shards_shown(s.shards);
    case VolunteerActivity::kEvaluating:
      return "scoring test examples with " + shards_shown(s.shards);
    case VolunteerActivity::kCommitting:
      return "sending what the round changed in " + shards_shown(s.shards);
    case VolunteerActivity::kHandingOver:
      return "handing over " + shards_shown(s.shards) + because(s.reason);
    case VolunteerActivity::kPaused:
      return "paused" + because(s.reason);
    case VolunteerActivity::kRefused:
      return fmt::format("refused by the master at {}{}", s.master, because(s.reason));
    case VolunteerActivity::kFinished:
      return "the run is finished" + because(s.reason);
    case VolunteerActivity::kStopped:
      return "stopped" + because(s.reason);
  }
  return "";
}

Json reason_json(const VolunteerStatus& s) {
  const std::string& why = s.sentence.empty() ? s.reason : s.sentence;
  return why.empty() ? Json() : Json(why);
}

}  // namespace

std::string status_text(const VolunteerStatus& status) {
  std::string text = sentence(status);
  if (is_at_work(status.activity)) text += details(status);
  if (status.retry_seconds >= 0) text += fmt::format("; next try in {} s", status.retry_seconds);
  return text;
}

std::string status_news(const VolunteerStatus& status) {
  // Every round commits: that is part of training unless one watches.
  VolunteerStatus shown = status;
  if (shown.activity == VolunteerActivity::kCommitting) {
    shown.activity = VolunteerActivity::kTraining;
  }
  std::string text = sentence(shown);
  if (shown.activity == VolunteerActivity::kTraining && shown.epochs > 0) {
    text += " (" + epoch_shown(shown) + ")";
  }
  if (shown.activity == VolunteerActivity::kRefused) {
    text += shown.retry_seconds >= 0 ? "; trying again later" : "";
  }
  return text;
}

std::string status_json(const VolunteerStatus& s) {
  const auto known = [](double value) {
    return value < 0 || !std::isfinite(value) ? Json() : Json(value);
  };
  Json json = {{"event", "status"},
               {"activity", activity_name(s.activity)},
               {"master", s.master},
               {"reason", reason_json(s)},
               {"shards", s.shards},
               {"round", s.rounds > 0 ? Json(s.round) : Json()},
               {"rounds", s.rounds > 0 ? Json(s.rounds) : Json()},
               {"epoch", s.epochs > 0 ? Json(s.epoch) : Json()},
               {"epochs", s.epochs > 0 ? Json(s.epochs) : Json()},
               {"volunteers", s.volunteers > 0 ? Json(s.volunteers) : Json()},
               {"p_at_1", known(s.p_at_1)},
               {"examples_per_second", known(s.examples_per_second)},
               {"memory_bytes", s.memory_bytes},
               {"downloaded_bytes", s.downloaded_bytes},
               {"retry_seconds", s.retry_seconds < 0 ? Json() : Json(s.retry_seconds)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

StatusLine::StatusLine(std::FILE* out, std::FILE* error, OutputOptions options,
                       std::function<unsigned()> width, std::function<Instant()> clock)
    : out_(out),
      error_(error),
      options_(options),
      width_(std::move(width)),
      clock_(std::move(clock)),
      line_(out) {}

void StatusLine::update(const VolunteerStatus& status) {
  const bool is_refusal = status.activity == VolunteerActivity::kRefused;
  if (options_.quiet && !is_refusal) return;
  const std::string news = status_news(status);
  const bool is_news = news != news_;
  if (options_.mode == OutputMode::kTerminal) {
    const Instant now = clock_();
    if (!is_news && shown_at_ && now - *shown_at_ < kTerminalPace) return;
    shown_at_ = now;
    news_ = news;
    // The reason of a refusal stays to be read, whatever comes next.
    if (is_news && is_refusal) line_.print(coloured(news, Colour::kRed, options_.style));
    const unsigned width = width_();
    line_.update(fit(status_text(status), width > 1 ? width - 1 : width, options_.style));
    return;
  }
  // A new attempt to connect is part of retrying: hours of it are one line.
  const bool is_attempt = status.activity == VolunteerActivity::kConnecting && is_retrying_;
  if (!is_news || is_attempt) return;
  is_retrying_ = status.activity == VolunteerActivity::kRetrying || is_refusal;
  news_ = news;
  if (options_.journal) {
    options_.journal->write(is_refusal ? Priority::kWarning : Priority::kInfo, news,
                            status_json(status));
    return;
  }
  print(options_.mode == OutputMode::kJson ? status_json(status) : news);
}

void StatusLine::log(LogLevel level, std::string_view message) {
  if (!options_.shows(level)) return;
  const Json json = {{"event", "log"}, {"level", log_level_name(level)}, {"message", message}};
  const std::string object = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (options_.mode == OutputMode::kJson) {
    print(object);
    return;
  }
  std::string text = printable(message);
  if (options_.journal) {
    options_.journal->write(priority_of(level), text, object);
    return;
  }
  if (level < LogLevel::kWarning) {
    print(text);
    return;
  }
  const Colour colour = level == LogLevel::kError ? Colour::kRed : Colour::kYellow;
  text = coloured(std::string(log_level_name(level)) + ": ", colour, options_.style) + text;
  line_.clear();
  std::fprintf(error_, "%s\n", text.c_str());
  std::fflush(error_);
}

void StatusLine::print(const std::string& text) {
  if (options_.mode == OutputMode::kTerminal) {
    line_.print(text);
    return;
  }
  std::fprintf(out_, "%s\n", text.c_str());
  std::fflush(out_);
}

namespace {

VolunteerActivity activity_of(volunteer::Snapshot::Phase phase) {
  using Phase = volunteer::Snapshot::Phase;
  switch (phase) {
    case Phase::kConnecting:
      return VolunteerActivity::kConnecting;
    case Phase::kRetrying:
      return VolunteerActivity::kRetrying;
    case Phase::kWaiting:
      return VolunteerActivity::kWaiting;
    case Phase::kLoading:
      return VolunteerActivity::kLoading;
    case Phase::kTraining:
      return VolunteerActivity::kTraining;
    case Phase::kLeaving:
      return VolunteerActivity::kHandingOver;
    case Phase::kPaused:
      return VolunteerActivity::kPaused;
    case Phase::kFinished:
      return VolunteerActivity::kFinished;
    case Phase::kExiting:
      return VolunteerActivity::kStopped;
  }
  return VolunteerActivity::kStarting;
}

}  // namespace

std::string thanks_text(const volunteer::Service& service) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(service.time).count();
  return fmt::format("{}, {}", volunteer::kThanks,
                     volunteer::work_words(static_cast<std::uint64_t>(seconds), service.examples,
                                           service.checked));
}

VolunteerStatus status_of(const volunteer::Snapshot& snapshot, const std::string& master,
                          std::uint64_t memory_bytes) {
  VolunteerStatus s;
  s.activity = activity_of(snapshot.phase);
  s.master = master;
  s.memory_bytes = memory_bytes;
  s.downloaded_bytes = snapshot.downloaded_bytes;
  for (const ShardId shard : snapshot.shards) s.shards.push_back(raw(shard));
  std::sort(s.shards.begin(), s.shards.end());
  if (snapshot.news) {
    const RunNews& news = *snapshot.news;
    s.rounds = news.rounds;
    s.round = std::min<RoundIndex>(news.round + 1, news.rounds);
    s.epochs = news.epochs;
    s.epoch = std::min(news.epoch + 1, news.epochs);
    s.volunteers = news.volunteers;
    s.p_at_1 = news.precision_at_1;
  }
  if (s.activity == VolunteerActivity::kTraining) {
    // The status line names the shards; the core's sentence cannot.
    if (snapshot.news) s.reason = snapshot.news->waiting_for;
  } else {
    s.sentence = snapshot.service ? thanks_text(*snapshot.service) : snapshot.sentence;
  }
  return s;
}

}  // namespace gleaner

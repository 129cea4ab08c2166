#include "volunteer/volunteer_status.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "common/console/terminal.hpp"

namespace gleaner {
namespace {

using Json = nlohmann::ordered_json;

// Longer lists of numbers tell nobody anything.
constexpr std::size_t kShardsNamed = 12;

const char* activity_name(VolunteerActivity activity) {
  constexpr const char* kNames[] = {"starting", "connecting",   "retrying", "waiting",  "loading",
                                    "training", "handing_over", "paused",   "finished", "stopped"};
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

// Only the epoch is news, not the round.
std::string epoch_shown(const VolunteerStatus& s) {
  return s.epochs == 0 ? std::string() : fmt::format("epoch {} of {}", s.epoch, s.epochs);
}

// Details of the run, which the updated line adds.
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
  return activity == VolunteerActivity::kTraining || activity == VolunteerActivity::kLoading ||
         activity == VolunteerActivity::kWaiting;
}

// An attempt to reach the master and the pause before it give one text, so that hours of waiting
// are one line.
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
    case VolunteerActivity::kWaiting:
      return "waiting for work" + because(s.reason, ": the run waits for ");
    case VolunteerActivity::kLoading:
      return "fetching " + shards_shown(s.shards) + " to train them";
    case VolunteerActivity::kTraining:
      if (!s.reason.empty()) {
        return "holding " + shards_shown(s.shards) + because(s.reason, ": the run waits for ");
      }
      return "training " + shards_shown(s.shards);
    case VolunteerActivity::kHandingOver:
      return "handing over " + shards_shown(s.shards) + because(s.reason);
    case VolunteerActivity::kPaused:
      return "paused" + because(s.reason);
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
  std::string text = sentence(status);
  if (status.activity == VolunteerActivity::kTraining && status.epochs > 0) {
    text += " (" + epoch_shown(status) + ")";
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

}  // namespace gleaner

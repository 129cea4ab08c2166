#include "master/see/status_words.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/console/terminal.hpp"
#include "common/text.hpp"
#include "common/time.hpp"

namespace gleaner {

namespace {

template <std::size_t N, typename Enum>
const char* name_in(const char* const (&names)[N], Enum value) {
  const auto place = static_cast<std::size_t>(value);
  return place < N ? names[place] : "unknown";
}

}  // namespace

const char* stage_name(RunStage stage) {
  return name_in({"waiting", "training", "evaluating", "stopping", "done"}, stage);
}

const char* owner_name(WaitOwner owner) {
  return name_in({"nobody", "operator", "volunteers", "master", "store"}, owner);
}

const char* state_name(LeaseState state) {
  return name_in({"free", "loading", "ready", "releasing"}, state);
}

std::vector<std::uint32_t> shards_of(const RunStatus& status, std::size_t volunteer,
                                     bool ready_only) {
  std::vector<std::uint32_t> shards;
  for (std::uint32_t s = 0; s < status.shards.size(); ++s) {
    const ShardEntry& shard = status.shards[s];
    if (shard.holder != volunteer) continue;
    if (!ready_only || shard.state == LeaseState::kReady) shards.push_back(s);
  }
  return shards;
}

std::string age(std::uint64_t us) {
  const double seconds = static_cast<double>(us) / 1e6;
  return seconds < 60 ? fmt::format("{:.1f} s", seconds)
                      : duration_words(static_cast<std::uint64_t>(seconds));
}

bool is_paused(const VolunteerEntry& volunteer) {
  // SessionState::pause_words() begins so, and no other reason does.
  return volunteer.no_shards.starts_with("paused");
}

std::string volunteer_state(const VolunteerEntry& volunteer, std::size_t held, std::size_t ready) {
  if (is_paused(volunteer)) return "paused";
  if (volunteer.is_leaving) return "leaving";
  if (held == 0) return volunteer.no_shards.empty() ? "idle" : "no shards";
  if (held > ready) return counted(held - ready, "shard") + " moving";
  return volunteer.owes ? "works" : "ready";
}

std::string volunteer_state(const RunStatus& status, std::size_t volunteer) {
  return volunteer_state(status.volunteers[volunteer], shards_of(status, volunteer, false).size(),
                         shards_of(status, volunteer, true).size());
}

namespace {

using Sentences = std::vector<std::string>;

std::string holder_name(const RunStatus& status, const ShardEntry& shard) {
  return shard.holder ? printable(status.volunteers[*shard.holder].name) : "nobody";
}

std::string stage_sentence(const RunProgress& p) {
  const std::string place =
      fmt::format("{} of {} batches are done, {} of {} rounds are kept", grouped(p.batch),
                  grouped(p.batches), grouped(p.round), grouped(p.rounds));
  switch (p.stage) {
    case RunStage::kWaiting:
      return fmt::format("The run waits: {}.", place);
    case RunStage::kTraining:
      return fmt::format("The run trains: {}.", place);
    case RunStage::kEvaluating:
      return fmt::format("The run is being evaluated: {}.", place);
    case RunStage::kStopping:
      return fmt::format("The run stops when its open round is whole: {}.", place);
    case RunStage::kDone:
      break;
  }
  return fmt::format("The run is {}: {}.", p.round == p.rounds ? "finished" : "over", place);
}

std::string owner_sentence(WaitOwner owner) {
  switch (owner) {
    case WaitOwner::kOperator:
      return "A person has to end that: start gleaner-volunteer with the line that the master "
             "printed.";
    case WaitOwner::kVolunteers:
      return "The volunteers that are named have to end that.";
    case WaitOwner::kMaster:
      return "The master's own processor has to end that.";
    case WaitOwner::kStore:
      return "The disk of the master's store has to end that.";
    case WaitOwner::kNobody:
      break;
  }
  return "";
}

// "in about 3 minutes": as exact as a forecast is.
std::string about_when(double seconds) {
  const auto whole = [](double value) { return static_cast<std::uint64_t>(value + 0.5); };
  if (seconds < 2) return "in a moment";
  if (seconds < 90) return fmt::format("in about {}", counted(whole(seconds), "second"));
  if (seconds < 90 * 60) return fmt::format("in about {} minutes", whole(seconds / 60));
  if (seconds < 48 * 3600) return fmt::format("in about {} hours", whole(seconds / 3600));
  return fmt::format("in about {} days", whole(seconds / 86'400));
}

std::string place_sentence(const RunStatus& s) {
  const RunProgress& p = s.progress;
  const std::string epoch =
      fmt::format("epoch {} of {}", std::min(p.epoch + 1, p.epochs), p.epochs);
  const std::string people = counted(p.volunteers, "volunteer");
  switch (p.stage) {
    case RunStage::kWaiting:
      return fmt::format("Waiting, in {}, with {}.", epoch, people);
    case RunStage::kTraining:
      if (p.eta_seconds >= 0 && !s.is_held_up) {
        return fmt::format("Training {} on {}; done {}.", epoch, people, about_when(p.eta_seconds));
      }
      return fmt::format("Training {} on {}.", epoch, people);
    case RunStage::kEvaluating:
      return fmt::format("Evaluating checkpoint {} of {} on {}.", p.round, p.rounds, people);
    case RunStage::kStopping:
      return "Stopping: the run ends when its open round is whole, and the same command resumes "
             "it.";
    case RunStage::kDone:
      break;
  }
  return p.round == p.rounds
             ? fmt::format("Finished: all {} checkpoints are kept.", p.rounds)
             : fmt::format("The run ended at checkpoint {} of {}.", p.round, p.rounds);
}

Sentences why_run(const RunStatus& s) {
  Sentences all = {stage_sentence(s.progress)};
  if (s.wait_owner == WaitOwner::kNobody) {
    all.emplace_back("Nothing is waited for.");
    return all;
  }
  if (!s.is_held_up) {
    all.push_back(fmt::format("Nothing holds it up. Next: {}; the last step was {} ago.",
                              printable(s.waits_for), age(s.waits_us)));
    return all;
  }
  all.push_back(fmt::format("It has been held up for {}, and waits for {}.", age(s.waits_us),
                            printable(s.waits_for)));
  all.push_back(owner_sentence(s.wait_owner));
  if (s.wait_owner != WaitOwner::kVolunteers) return all;
  for (const VolunteerEntry& v : s.volunteers) {
    if (!v.owes) continue;
    if (is_paused(v)) {
      all.push_back(fmt::format("{} is {}, and has work outstanding ({} out).", printable(v.name),
                                printable(v.no_shards), counted(v.units_out, "unit")));
      continue;
    }
    all.push_back(fmt::format(
        "{} has had work outstanding for {} ({} out) and was last heard {} ago.", printable(v.name),
        age(v.owes_us), counted(v.units_out, "unit"), age(v.silent_us)));
  }
  return all;
}

Sentences why_shard(const RunStatus& status, std::uint32_t number) {
  const ShardEntry& s = status.shards[number];
  const std::string holder = holder_name(status, s);
  const std::string before = printable(s.held_before);
  const std::string why = printable(s.moved_why);
  Sentences all;
  switch (s.state) {
    case LeaseState::kFree:
      all.push_back(fmt::format("Shard {} is nobody's, for {}.", number, age(s.since_us)));
      all.push_back(fmt::format("The run waits for {}.", printable(status.waits_for)));
      break;
    case LeaseState::kLoading:
      all.push_back(before.empty() ? fmt::format("Shard {} is being loaded by {}, for {}.", number,
                                                 holder, age(s.since_us))
                                   : fmt::format("Shard {} is being moved from {} to {}, for {}.",
                                                 number, before, holder, age(s.since_us)));
      if (s.chunks > 0) {
        all.push_back(fmt::format("{} was sent {:.0f} % of what is stored of it.", holder,
                                  100.0 * s.chunks_sent / s.chunks));
      }
      break;
    case LeaseState::kReady:
      all.push_back(fmt::format("Shard {} is trained by {}, which has been ready with it for {}.",
                                number, holder, age(s.since_us)));
      break;
    case LeaseState::kReleasing:
      all.push_back(
          fmt::format("Shard {} was asked back from {} {} ago, which has not handed it "
                      "over yet: {}.",
                      number, holder, age(s.since_us), why));
      break;
  }
  if (s.state != LeaseState::kReleasing && !before.empty() && !why.empty()) {
    all.push_back(fmt::format("It left {} because: {}.", before, why));
  }
  all.push_back(fmt::format("The next batch it is to be trained on is {}, and {} of it are kept.",
                            grouped(s.next_batch), counted(s.committed, "round")));
  if (is_input(status, number)) all.push_back("It is a part of the input layer.");
  return all;
}

std::string shards_sentence(const RunStatus& status, std::size_t place) {
  const VolunteerEntry& v = status.volunteers[place];
  const std::vector<std::uint32_t> held = shards_of(status, place, false);
  if (!held.empty()) {
    return fmt::format("It holds {} of {}: {}.", held.size(),
                       counted(status.shards.size(), "shard"), ranges_shown(held));
  }
  if (!v.no_shards.empty()) return fmt::format("It has no shards: {}.", printable(v.no_shards));
  if (v.is_leaving) return "It has handed over all its shards.";
  return "It has no shards yet: the next ones that are free, or move between two rounds, are for "
         "whoever lacks most.";
}

void explain_volunteer(const RunStatus& status, std::size_t place, Sentences& all) {
  const VolunteerEntry& v = status.volunteers[place];
  const std::string name = printable(v.name);
  all.push_back(
      fmt::format("{} takes part {}, with {}{}.", name,
                  v.is_local ? std::string("in the master's process") : "from " + printable(v.peer),
                  counted(v.cores, "thread"), v.is_leaving ? ", and is leaving" : ""));
  if (is_paused(v)) {
    all.push_back(fmt::format("It is {}.", printable(v.no_shards)));
  }
  all.push_back(shards_sentence(status, place));
  double total = 0;
  for (const VolunteerEntry& other : status.volunteers) total += double{other.speed};
  if (v.speed > 0) {
    all.push_back(fmt::format("It does {} examples x shards a second, {:.0f} % of what all do.",
                              grouped(static_cast<std::uint64_t>(v.speed)),
                              100 * double{v.speed} / total));
  }
  all.push_back(v.owes ? fmt::format("It has work outstanding ({} out), and last finished some {} "
                                     "ago.",
                                     counted(v.units_out, "unit"), age(v.owes_us))
                       : std::string("It has no work outstanding."));
  all.push_back(fmt::format("It was last heard {} ago{}.", age(v.silent_us),
                            v.round_trip_us < 0
                                ? std::string()
                                : fmt::format("; a round trip takes {:.1f} ms",
                                              static_cast<double>(v.round_trip_us) / 1e3)));
}

std::string known_names(const RunStatus& status) {
  constexpr std::size_t kNamesShown = 12;
  std::string names;
  for (std::size_t i = 0; i < status.volunteers.size() && i < kNamesShown; ++i) {
    names += (names.empty() ? "" : ", ") + printable(status.volunteers[i].name);
  }
  if (status.volunteers.size() > kNamesShown) names += " and others";
  return names.empty() ? "nobody" : names;
}

Result<Sentences> why_volunteer(const RunStatus& status, const std::string& name) {
  Sentences all;
  for (std::size_t i = 0; i < status.volunteers.size(); ++i) {
    if (status.volunteers[i].name == name) explain_volunteer(status, i, all);
  }
  for (const DepartureEntry& d : status.gone) {
    if (d.name != name) continue;
    all.push_back(fmt::format("{} went {} ago: {}; {} of it became free.", printable(d.name),
                              age(d.ago_us), printable(d.reason), counted(d.shards, "shard")));
  }
  if (!all.empty()) return all;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("'{}' is no volunteer of the run: here are {}; ask about one of them, "
                           "about a shard's number, or about 'run'",
                           printable(name), known_names(status))};
}

}  // namespace

std::string headline(const RunStatus& s) {
  std::string text = place_sentence(s);
  if (!s.is_held_up || s.wait_owner == WaitOwner::kNobody) return text;
  text += fmt::format(" It has been held up for {}, and waits for {}.", age(s.waits_us),
                      printable(s.waits_for));
  if (s.wait_owner == WaitOwner::kOperator) text += " " + owner_sentence(s.wait_owner);
  return text;
}

Result<std::vector<std::string>> why(const RunStatus& status, const std::string& about) {
  if (about == "run") return why_run(status);
  const bool is_number = !about.empty() && std::ranges::all_of(about, [](unsigned char c) {
    return c >= '0' && c <= '9';
  });
  if (!is_number) return why_volunteer(status, about);
  if (status.shards.empty()) {
    return Error{ErrorCode::kInvalidArgument, "the run has no shards"};
  }
  const std::size_t last = status.shards.size() - 1;
  const Result<std::uint32_t> number = parse_number("shard", about, last);
  if (!number) return number.error();
  return why_shard(status, *number);
}

}  // namespace gleaner

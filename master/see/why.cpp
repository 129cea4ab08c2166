
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "common/console/terminal.hpp"
#include "common/text.hpp"
#include "master/see/status_words.hpp"

namespace gleaner {
namespace {

using Sentences = std::vector<std::string>;

class Reasons {
 public:
  explicit Reasons(const RunStatus& status) : status_(status) {}

  [[nodiscard]] Sentences of_run() const;
  [[nodiscard]] Sentences of_shard(std::uint32_t number) const;
  [[nodiscard]] Result<Sentences> of_volunteer(const std::string& name) const;
  // Says in one sentence where the run is.
  [[nodiscard]] std::string place() const;

 private:
  [[nodiscard]] std::string stage() const;
  [[nodiscard]] std::string holder(const ShardEntry& shard) const;
  [[nodiscard]] std::string shards(std::size_t place) const;
  void add_volunteer(std::size_t place, Sentences& all) const;
  [[nodiscard]] std::string known_names() const;

  const RunStatus& status_;
};

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

// "in about 3 minutes": rounded, since it is a forecast.
std::string about_when(double seconds) {
  const auto whole = [](double value) { return static_cast<std::uint64_t>(value + 0.5); };
  if (seconds < 2) return "in a moment";
  if (seconds < 90) return fmt::format("in about {}", counted(whole(seconds), "second"));
  if (seconds < 90 * 60) return fmt::format("in about {} minutes", whole(seconds / 60));
  if (seconds < 48 * 3600) return fmt::format("in about {} hours", whole(seconds / 3600));
  return fmt::format("in about {} days", whole(seconds / 86'400));
}

}  // namespace

std::string Reasons::holder(const ShardEntry& shard) const {
  return shard.holder ? printable(status_.volunteers[*shard.holder].name) : "nobody";
}

std::string Reasons::stage() const {
  const RunProgress& p = status_.progress;
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

std::string Reasons::place() const {
  const RunProgress& p = status_.progress;
  const std::string epoch =
      fmt::format("epoch {} of {}", std::min(p.epoch + 1, p.epochs), p.epochs);
  const std::string people = counted(p.volunteers, "volunteer");
  switch (p.stage) {
    case RunStage::kWaiting:
      return fmt::format("Waiting, in {}, with {}.", epoch, people);
    case RunStage::kTraining:
      if (p.eta_seconds >= 0 && !status_.is_held_up) {
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

Sentences Reasons::of_run() const {
  const RunStatus& s = status_;
  Sentences all = {stage()};
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

Sentences Reasons::of_shard(std::uint32_t number) const {
  const ShardEntry& s = status_.shards[number];
  const std::string holder = this->holder(s);
  const std::string before = printable(s.held_before);
  const std::string why = printable(s.moved_why);
  Sentences all;
  switch (s.state) {
    case LeaseState::kFree:
      all.push_back(fmt::format("Shard {} is nobody's, for {}.", number, age(s.since_us)));
      all.push_back(fmt::format("The run waits for {}.", printable(status_.waits_for)));
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
  if (is_input(status_, number)) all.push_back("It is a part of the input layer.");
  return all;
}

std::string Reasons::shards(std::size_t place) const {
  const VolunteerEntry& v = status_.volunteers[place];
  const std::vector<std::uint32_t> held = shards_of(status_, place, false);
  if (!held.empty()) {
    return fmt::format("It holds {} of {}: {}.", held.size(),
                       counted(status_.shards.size(), "shard"), ranges_shown(held));
  }
  if (!v.no_shards.empty()) return fmt::format("It has no shards: {}.", printable(v.no_shards));
  if (v.is_leaving) return "It has handed over all its shards.";
  return "It has no shards yet: the next ones that are free, or move between two rounds, are for "
         "whoever lacks most.";
}

void Reasons::add_volunteer(std::size_t place, Sentences& all) const {
  const VolunteerEntry& v = status_.volunteers[place];
  const std::string name = printable(v.name);
  all.push_back(
      fmt::format("{} takes part {}, with {}{}.", name,
                  v.is_local ? std::string("in the master's process") : "from " + printable(v.peer),
                  counted(v.cores, "thread"), v.is_leaving ? ", and is leaving" : ""));
  if (is_paused(v)) {
    all.push_back(fmt::format("It is {}.", printable(v.no_shards)));
  }
  all.push_back(shards(place));
  double total = 0;
  for (const VolunteerEntry& other : status_.volunteers) total += double{other.speed};
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

std::string Reasons::known_names() const {
  constexpr std::size_t kNamesShown = 12;
  std::string names;
  for (std::size_t i = 0; i < status_.volunteers.size() && i < kNamesShown; ++i) {
    names += (names.empty() ? "" : ", ") + printable(status_.volunteers[i].name);
  }
  if (status_.volunteers.size() > kNamesShown) names += " and others";
  return names.empty() ? "nobody" : names;
}

Result<Sentences> Reasons::of_volunteer(const std::string& name) const {
  Sentences all;
  for (std::size_t i = 0; i < status_.volunteers.size(); ++i) {
    if (status_.volunteers[i].name == name) add_volunteer(i, all);
  }
  for (const DepartureEntry& d : status_.gone) {
    if (d.name != name) continue;
    all.push_back(fmt::format("{} went {} ago: {}; {} of it became free.", printable(d.name),
                              age(d.ago_us), printable(d.reason), counted(d.shards, "shard")));
  }
  if (!all.empty()) return all;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("'{}' is no volunteer of the run: here are {}; ask about one of them, "
                           "about a shard's number, or about 'run'",
                           printable(name), known_names())};
}

std::string headline(const RunStatus& s) {
  std::string text = Reasons(s).place();
  if (!s.is_held_up || s.wait_owner == WaitOwner::kNobody) return text;
  text += fmt::format(" It has been held up for {}, and waits for {}.", age(s.waits_us),
                      printable(s.waits_for));
  if (s.wait_owner == WaitOwner::kOperator) text += " " + owner_sentence(s.wait_owner);
  return text;
}

Result<std::vector<std::string>> why(const RunStatus& status, const std::string& about) {
  if (about == "run") return Reasons(status).of_run();
  const bool is_number = !about.empty() && std::ranges::all_of(about, [](unsigned char c) {
    return c >= '0' && c <= '9';
  });
  if (!is_number) return Reasons(status).of_volunteer(about);
  if (status.shards.empty()) {
    return Error{ErrorCode::kInvalidArgument, "the run has no shards"};
  }
  const std::size_t last = status.shards.size() - 1;
  const Result<std::uint32_t> number = parse_number("shard", about, last);
  if (!number) return number.error();
  return Reasons(status).of_shard(*number);
}

}  // namespace gleaner

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "volunteer/lend/work_record.hpp"
#include "volunteer/volunteer_status.hpp"

namespace gleaner {
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

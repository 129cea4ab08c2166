// Says what a volunteer is doing and why: as a line, as news, as JSON. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/ids.hpp"
#include "volunteer/core/events.hpp"

namespace gleaner {

enum class VolunteerActivity : std::uint8_t {
  kStarting,     // measuring the machine
  kConnecting,   // to `master`; `reason`: why the last attempt failed, if there was one
  kRetrying,     // pausing before the next attempt; `reason`: why
  kWaiting,      // let in, without work; `reason`: what the run waits for
  kLoading,      // fetching `shards`
  kTraining,     // on `shards`; `reason`: what the run waits for meanwhile, if anything
  kHandingOver,  // giving `shards` back; `reason`: why
  kPaused,       // computing nothing; `sentence`: why, and when it may end
  kFinished,     // the run is over
  kStopped,      // left; `reason`: why
};

struct VolunteerStatus {
  VolunteerActivity activity = VolunteerActivity::kStarting;
  std::string master;  // HOST:PORT
  std::string reason;
  std::string sentence;               // instead of the one made from the other fields, if given
  std::vector<std::uint32_t> shards;  // ascending
  RoundIndex round = 0, rounds = 0;   // counted from 1; rounds 0: unknown
  std::uint32_t epoch = 0, epochs = 0;
  std::uint32_t volunteers = 0;  // at the master; 0: unknown
  double p_at_1 = -1;            // of the latest evaluation; what is unknown is negative
  double examples_per_second = -1;
  std::uint64_t memory_bytes = 0;      // that the shards take
  std::uint64_t downloaded_bytes = 0;  // of shards, since this process started
  std::int64_t retry_seconds = -1;
  friend bool operator==(const VolunteerStatus&, const VolunteerStatus&) = default;
};

// The whole line. Makes `reason` and `sentence` printable, since they may quote the master.
std::string status_text(const VolunteerStatus& status);
// The part of the line whose changes are news: no round, speed or countdown.
std::string status_news(const VolunteerStatus& status);
// {"event":"status","activity":"training",...} without a newline.
std::string status_json(const VolunteerStatus& status);

// `master` is HOST:PORT; `memory_bytes` are the shards' bytes.
VolunteerStatus status_of(const volunteer::Snapshot& snapshot, const std::string& master,
                          std::uint64_t memory_bytes);

// "finished: thank you, 3 h 12 min, 41,000 examples checked".
std::string thanks_text(const volunteer::Service& service);

}  // namespace gleaner

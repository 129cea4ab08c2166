// Shows in one line, always, what a volunteer is doing and why. On a terminal the line is updated
// in place; elsewhere a line is printed when what it says changes, not when a number moves; with
// JSON, an object instead of the line. Rendering is pure; StatusLine writes. I/O thread only.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/console/log.hpp"
#include "common/console/output.hpp"
#include "common/console/terminal.hpp"
#include "common/ids.hpp"
#include "common/time.hpp"
#include "volunteer/core/events.hpp"

namespace gleaner {

enum class VolunteerActivity : std::uint8_t {
  kStarting,     // measuring the machine
  kConnecting,   // to `master`; `reason`: why the last attempt failed, if there was one
  kRetrying,     // pausing before the next attempt; `reason`: why
  kJoining,      // connected, waiting to be let in
  kWaiting,      // let in, without work; `reason`: what the run waits for
  kLoading,      // fetching `shards`
  kTraining,     // on `shards`; `reason`: what the run waits for meanwhile, if anything
  kEvaluating,   // with `shards`
  kCommitting,   // sending what changed in `shards`
  kHandingOver,  // giving `shards` back; `reason`: why
  kPaused,       // computing nothing; `sentence`: why, and when it may end
  kRefused,      // by the master, for good or to try again; `reason`: its sentence
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

// The whole line. `reason` and `sentence` may quote the master; they are made printable.
std::string status_text(const VolunteerStatus& status);
// The part of it that is news when it changes: no round, speed or countdown.
std::string status_news(const VolunteerStatus& status);
// {"event":"status","activity":"training",...} without a newline.
std::string status_json(const VolunteerStatus& status);

class StatusLine : public LogSink {
 public:
  // The streams outlive this; `width` and `clock` are asked at every update.
  StatusLine(std::FILE* out, std::FILE* error, OutputOptions options,
             std::function<unsigned()> width, std::function<Instant()> clock);

  // Call whenever anything changed, as often as you like.
  void update(const VolunteerStatus& status);
  // Warnings and errors go to the error stream; with JSON, {"event":"log",...} to the other.
  void log(LogLevel level, std::string_view message) override;

 private:
  void print(const std::string& text);

  std::FILE* out_;
  std::FILE* error_;
  OutputOptions options_;
  std::function<unsigned()> width_;
  std::function<Instant()> clock_;
  std::optional<Instant> shown_at_;
  std::string news_;
  bool is_retrying_ = false;
  TerminalLine line_;
};

// From what the volunteer's core reports to what the status line shows. Pure.

// `master` is HOST:PORT, `memory_bytes` what the shards take.
VolunteerStatus status_of(const volunteer::Snapshot& snapshot, const std::string& master,
                          std::uint64_t memory_bytes);

// "finished: thank you, 3 h 12 min, 41,000 examples checked".
std::string thanks_text(const volunteer::Service& service);

}  // namespace gleaner

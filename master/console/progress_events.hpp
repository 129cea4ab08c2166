// What the console is told: a snapshot of the run as often as one likes, and events as they happen.
// Plain immutable values; the JSON form of each stands in EVENTS.md. What is unknown is negative.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/console/log.hpp"
#include "common/exit_code.hpp"
#include "common/ids.hpp"
#include "common/result.hpp"

namespace gleaner {

enum class RunPhase : std::uint8_t {
  kLoading,     // reading data, opening the store
  kWaiting,     // for volunteers, or for one that lags
  kTraining,    // batches are in flight
  kCommitting,  // a round drains and is written
  kEvaluating,
  kStopping,
  kFinished,
};

// Shares between 0 and 1 over the held-out points that were scored; negative when not measured.
struct Scores {
  double p_at_1 = -1, p_at_3 = -1, p_at_5 = -1;
  double psp_at_1 = -1, psp_at_3 = -1, psp_at_5 = -1;
  double p_at_1_halfwidth = -1;  // of its 95 % interval; negative when all points were scored

  [[nodiscard]] bool measured() const { return p_at_1 >= 0; }

  friend bool operator==(const Scores&, const Scores&) = default;
};

// The run at one moment.
struct RunSnapshot {
  RunPhase phase = RunPhase::kLoading;
  RoundIndex rounds_done = 0;  // whole checkpoints
  RoundIndex rounds = 0;
  BatchIndex batches_done = 0;
  BatchIndex batches = 0;
  std::uint32_t epochs_done = 0;
  std::uint32_t epochs = 0;
  double examples_per_second = -1;
  double loss = -1;    // nats an example, of the latest batches
  double active = -1;  // active neurons an example
  Scores scores;       // of the latest evaluation
  std::uint32_t volunteers = 0;
  std::uint32_t staleness = 0;  // batches of lag in use
  double bytes_down = -1;       // an example and volunteer, work units only
  double bytes_up = -1;
  double eta_seconds = -1;
  std::string waiting_for;  // what holds the run up, as it follows "waiting for"; else empty
  friend bool operator==(const RunSnapshot&, const RunSnapshot&) = default;
};

// ---- Events ------------------------------------------------------------------------------------

// The run is open and about to train (or, when finished, about to say so).
struct RunStarted {
  std::string store;
  bool resumed = false;
  RoundIndex checkpoint = 0;  // rounds in the store
  RoundIndex rounds = 0;
  std::uint64_t points = 0, test_points = 0;
  std::uint64_t features = 0, labels = 0;
  std::uint32_t hidden = 0, output_shards = 0;
  std::uint32_t epochs = 0, batch_examples = 0, staleness = 0;
  std::uint64_t seed = 0;
  std::uint32_t local = 0;  // local volunteers
};

// The model's values that the recipe chose, and why.
struct RecipeChosen {
  struct Value {
    std::string key;  // "model.hidden"
    std::string value;
    std::string why;
  };

  std::string recipe;
  std::vector<Value> values;
};

struct Listening {
  std::string address;  // HOST:PORT in use
  std::string join;     // what to give to gleaner-volunteer; empty when no invite is open
};

// The run's page answers.
struct PageServed {
  std::string url;
  std::string key;  // after url and "/#", the page shows more; see common/access/page_key.hpp
  bool has_other_port = false;  // the one that was asked for is taken
};

struct VolunteerJoined {
  std::string name;
  std::string address;  // empty for a local one
  std::uint32_t threads = 0;
  std::uint64_t memory_bytes = 0;
  std::string simd;
  std::uint32_t volunteers = 0;  // now
};

struct VolunteerLeft {
  std::string name;
  std::string reason;        // "said goodbye", "connection lost: …"
  bool polite = false;       // it handed its shards over
  std::uint32_t shards = 0;  // that others take over
  std::uint32_t volunteers = 0;
};

struct CheckpointSaved {
  RoundIndex checkpoint = 0;  // rounds done
  RoundIndex rounds = 0;
  BatchIndex batches = 0;  // done
  std::uint32_t epochs_done = 0, epochs = 0;
  bool ends_epoch = false;
  double loss = -1;  // over the round
  double active = -1;
  double examples_per_second = -1;
  double bytes_down = -1, bytes_up = -1;
};

struct Evaluated {
  RoundIndex checkpoint = 0;
  std::uint32_t epochs_done = 0, epochs = 0;
  std::uint64_t points = 0;  // scored
  bool all = false;          // the whole held-out file
  Scores scores;
  double seconds = -1;
  std::uint64_t test_points = 0;  // in the whole held-out file
};

// Training waits until the store's disk has room; it goes on by itself.
struct Paused {
  std::string reason;
};

struct Resumed {
  double seconds = 0;  // that it was paused
};

// A round has diverged: it is discarded, and trained again at half the rates.
struct RatesCut {
  RoundIndex checkpoint = 0;  // from which it is trained again
  BatchIndex batch = 0;       // the first at the lower rates
  std::string sign;           // what showed it: "loss" or "code_length"
  std::string what;           // the same as a clause
  double value = -1;          // of the discarded round
  double before = -1;         // what it was held against
  std::uint32_t cuts = 0;     // in the run so far
};

// A backup of the store was made.
struct BackedUp {
  std::string folder;
  std::uint32_t backup = 0;  // its number
  RoundIndex checkpoint = 0;
  std::uint64_t bytes = 0;    // of the whole backup, shared with others or not
  double seconds = -1;        // it took, beside the training
  double stall_seconds = -1;  // of these, the store was busy with it
  std::uint32_t kept = 0;     // backups there are now
};

// A clean stop before the end; the same command resumes.
struct RunStopped {
  RoundIndex checkpoint = 0;
  RoundIndex rounds = 0;
  bool round_finished = false;  // the open round became a checkpoint; else it was given up
  std::string store;
};

// The network's first answers beside those of the nearest label centroids, on the same examples of
// the last evaluation.
struct CentroidComparison {
  std::uint64_t examples = 0;
  double network_p_at_1 = -1;
  double centroid_p_at_1 = -1;
  double halfwidth = 0;  // of the 95 % interval of their difference

  [[nodiscard]] bool network_is_below() const {
    return centroid_p_at_1 - network_p_at_1 > halfwidth;
  }
};

struct RunFinished {
  std::uint32_t epochs = 0;
  Scores scores;
  double examples_per_second = -1;  // over the times of all rounds, without evaluations
  std::string digest;
  RoundIndex checkpoint = 0;
  std::uint64_t evaluated = 0;    // held-out points
  bool evaluated_all = false;     // the whole held-out file
  std::uint64_t test_points = 0;  // in it
  std::string test;               // the held-out file; empty: none
  std::string store;
  double seconds = -1;             // that this process trained
  bool already = false;            // the store held a finished run
  RoundIndex best_checkpoint = 0;  // of those evaluated, with the best P@1
  double best_p_at_1 = -1;
  std::string best_store;  // where that one is kept; empty: nowhere
  // Not 0 when the run ended early, since P@1 had not risen in this number of evaluations.
  std::uint32_t evaluations_since_best = 0;
  std::optional<CentroidComparison> centroids;  // made when a run is trained to its end
  std::string recipe;
};

// The program ends without having done what was asked.
struct RunFailed {
  Error error;
  ExitCode exit = ExitCode::kFailure;
};

struct LogLine {
  LogLevel level = LogLevel::kInfo;
  std::string message;
};

using RunEvent = std::variant<RecipeChosen, RunStarted, Listening, PageServed, VolunteerJoined,
                              VolunteerLeft, CheckpointSaved, Evaluated, Paused, Resumed, RatesCut,
                              BackedUp, RunStopped, RunFinished, RunFailed, LogLine>;

}  // namespace gleaner

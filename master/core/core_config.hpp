// Settings of the master's core besides the model: deadlines, limits, evaluation, audits. None of
// them changes a number of the model. master/core_settings.cpp fills in the settings that follow
// from the data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/access/standing.hpp"
#include "common/ids.hpp"
#include "common/limits.hpp"
#include "common/model/precision.hpp"
#include "common/model/run_plan.hpp"
#include "common/model/shard_map.hpp"
#include "common/model/shard_rows.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "master/core/learning_so_far.hpp"
#include "schema/messages.hpp"
#include "schema/records.hpp"

namespace gleaner {

// Says whose work others repeat and compare.
enum class AuditMode : std::uint8_t {
  kOff,       // nobody's
  kAdaptive,  // of every volunteer that nobody vouches for, some rounds; see AuditSampler
  kAll,       // all that such volunteers do
};

// Settings that a person can make, with the defaults of their keys. The table of keys
// (master/config) writes these fields.
struct CoreSettings {
  Millis heartbeat{1000};       // something is sent to every volunteer at least this often
  Millis silence{10'000};       // a volunteer silent for longer is taken for dead
  Millis join_timeout{10'000};  // a connection must introduce itself within this
  Millis stall{120'000};        // a volunteer with work and no answer for longer is let go
  Millis rejoin_grace{2'000};   // after a restart, free shards wait for those who have them
  Millis stop_grace{20'000};    // how long a stop waits for the open round to become whole
  std::uint32_t sessions_max = kOutputShardsMax;  // volunteers at a time; others are refused
  std::uint32_t min_volunteers = 1;               // volunteers that the run waits for
  std::uint32_t batches_per_unit_max = 16;
  Micros unit_target{200'000};      // units are of about this much work, where they can be
  double balance_hysteresis = 0.1;  // shards move when batches could be faster by this fraction
  AuditMode audit = AuditMode::kAll;
  double audit_share = 0.1;                 // kAdaptive: of a stranger's later rounds
  std::uint32_t evaluate_every_epochs = 1;  // 0: only at the end
  std::string purpose;                      // of the run, for people; may be empty
  friend bool operator==(const CoreSettings&, const CoreSettings&) = default;
};

struct CoreConfig : CoreSettings {
  Millis stranger_stall{5'000};  // the least that `stall` is for a stranger; see Sessions::time_for
  std::uint32_t unbalanced_rounds = 3;  // shards move after N rounds: speeds fluctuate
  Millis forget_slowness{60'000};       // a speed measured this long ago is doubled
  std::uint64_t shard_bytes = 0;        // what a volunteer needs for one output shard
  std::uint64_t holder_bytes = 0;       // a volunteer's bytes besides its shards
  bool lends_input = false;             // volunteers hold the input shards too
  std::uint64_t input_shard_bytes = 0;  // what a volunteer needs for one of them
  std::uint64_t test_fingerprint = 0;   // of the test set
  std::uint32_t rows_per_chunk = 1024;  // of a shard's download
  std::vector<KernelDigest> kernels;    // of this machine; volunteers must have the same
  std::uint64_t test_points = 0;        // 0: no evaluation at all
  std::uint64_t evaluate_sample = 0;    // points that an evaluation scores; 0: all of them
  Patience patience;
  std::string run;                     // its name, told to the volunteers' owners
  std::uint32_t evaluate_chunk = 256;  // test examples a unit
  std::uint32_t evaluate_chunks_in_flight = 4;
  std::uint32_t top_k = 5;                  // best labels that are asked for, per test example
  std::vector<std::uint32_t> label_counts;  // of the training data, one a label
  std::uint32_t newcomer_rounds = 2;        // kAdaptive: a stranger's first rounds, all audited
  std::uint64_t audit_secret = 0;  // kAdaptive: makes the audited rounds impossible to foresee
  // Under other modes: an earlier start was adaptive, so that checkpoints may hold unaudited work.
  bool holds_unaudited = false;
  // For tests: the core looks at everything after every event. The effects are the same.
  bool looks_at_all = false;

  // How many examples an evaluation scores.
  [[nodiscard]] std::uint64_t evaluated_points() const {
    return evaluate_sample == 0 ? test_points : std::min(evaluate_sample, test_points);
  }
};

// The state of a run when the master starts.
struct ResumePoint {
  RoundIndex checkpoint = 0;           // rounds folded
  bool is_evaluated = false;           // whether that checkpoint's evaluation is on record
  LeaseEpoch first_epoch{1};           // no lease of the run has borne it or a later one
  std::vector<ShardDigest> digests{};  // one a shard; without them no offer is accepted
  std::vector<BatchIndex> rate_cuts{};
  LearningSoFar learning{};
  std::set<KeyId> proven{};    // strangers with commits in the ledger, which are no newcomers
  std::set<KeyId> trained{};   // and those with answered units, whose work a checkpoint may hold
  Precision last_precision{};  // of the last checkpoint that was evaluated
  // Without a hidden layer: staged commits that count, by round and shard. A shard's commits are of
  // consecutive rounds from the checkpoint on, and end at the next checkpoint that is to be
  // evaluated.
  std::vector<SettledRound> settled{};
};

// Facts that are fixed while a core lives: the model, the settings, and the plan and map that
// follow from the model. Immutable; the classes of the core share one setup by reference.
struct RunSetup {
  // Requires a valid `model`, and one entry per label in `config.label_counts`.
  RunSetup(const ModelConfig& the_model, CoreConfig the_config, std::vector<BatchIndex> rate_cuts)
      : model(the_model),
        config(std::move(the_config)),
        plan(model, std::move(rate_cuts)),
        map(model) {
    GLEANER_CHECK(config.label_counts.size() == model.labels);
  }

  const ModelConfig model;
  const CoreConfig config;
  const RunPlan plan;
  const ShardMap map;
};

}  // namespace gleaner

// Records of a run, used by the core that makes them, the store, the page and the tools. Each has a
// table of its fields by their names in JSON. Plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/access/standing.hpp"
#include "common/ids.hpp"
#include "common/model/calibration.hpp"
#include "common/model/precision.hpp"
#include "common/model/shard_rows.hpp"
#include "common/time.hpp"
#include "schema/messages.hpp"

namespace gleaner {

// Precision on test examples.
struct Evaluation {
  std::uint64_t points = 0;  // test examples scored
  bool all_points = false;   // the whole test set
  Precision precision;
  double ndcg_at_3 = -1, ndcg_at_5 = -1;  // means over the examples; negative: not measured
  Calibration calibration;                // of the examples' best labels
  std::uint64_t test_points = 0;          // in the test set
};

// A round that became a checkpoint. Figures that were not measured are negative.
struct RoundRecord {
  RoundIndex checkpoint = 0;  // rounds folded
  BatchIndex batches = 0;     // trained in the run so far
  std::uint32_t epoch = 0;    // epochs complete
  double loss = -1;           // mean over the round, nats per example
  double active = -1;         // mean over the round, active neurons per example
  double code_length = -1;    // mean length of quantized activations; missing from older programs
  double examples_per_second = -1;  // since the round before, without evaluations
  std::uint32_t volunteers = 0;
  double bytes_down = -1;  // bytes of work units per example and volunteer
  double bytes_up = -1;
  std::uint64_t evaluated = 0;  // test examples scored; 0 while the checkpoint is not evaluated
  bool evaluated_all = false;   // the whole test set
  // Fingerprint of the test file, set by RunStore::put_history(); 0 from older programs.
  std::uint64_t test = 0;
  Precision precision;
  double ndcg_at_3 = -1, ndcg_at_5 = -1;
  Calibration calibration;
  std::int64_t wall_seconds = 0;  // seconds since 1970, set by the shell
  // Set by RunStore::fold(): learning-rate halvings before the round, and rows_digest() of the
  // checkpoint (0 from older programs).
  std::uint32_t rate_cuts = 0;
  std::uint64_t rows_digest = 0;

  [[nodiscard]] RoundIndex round() const { return checkpoint - 1; }

  void add(const Evaluation& evaluation) {
    evaluated = evaluation.points;
    evaluated_all = evaluation.all_points;
    precision = evaluation.precision;
    ndcg_at_3 = evaluation.ndcg_at_3;
    ndcg_at_5 = evaluation.ndcg_at_5;
    calibration = evaluation.calibration;
  }

  friend bool operator==(const RoundRecord&, const RoundRecord&) = default;
};

template <typename Visit>
void visit_fields(RoundRecord& r, const Visit& visit) {
  visit("checkpoint", r.checkpoint);
  visit("batches", r.batches);
  visit("epoch", r.epoch);
  visit("loss", r.loss);
  visit("active", r.active);
  visit("code_length", r.code_length);
  visit("examples_per_second", r.examples_per_second);
  visit("volunteers", r.volunteers);
  visit("bytes_down", r.bytes_down);
  visit("bytes_up", r.bytes_up);
  visit("evaluated", r.evaluated);
  visit("evaluated_all", r.evaluated_all);
  visit("test", r.test);
  visit_precision(r.precision, visit);
  visit("ndcg_at_3", r.ndcg_at_3);
  visit("ndcg_at_5", r.ndcg_at_5);
  visit("calibration_slope", r.calibration.slope);
  visit("calibration_offset", r.calibration.offset);
  visit("wall_seconds", r.wall_seconds);
  visit("rate_cuts", r.rate_cuts);
  visit("rows_digest", r.rows_digest);
}

// How far the work of a shard in a round can be relied on.
enum class WorkVerdict : std::uint8_t {
  kConfirmed,  // an auditor did the same work and got the same result
  kTrusted,    // somebody vouches for the volunteer, or the master did the work
  kUnaudited,  // a stranger's work that nobody did again
};
inline constexpr std::array<std::string_view, 3> kWorkVerdictNames = {"confirmed", "trusted",
                                                                      "unaudited"};

inline std::string_view name_of(WorkVerdict verdict) {
  return kWorkVerdictNames[static_cast<std::size_t>(verdict)];
}

// A shard in a round: the volunteer whose commit was folded, and the auditor of that work.
struct Receipt {
  ShardId shard{};
  ShardDigest digest;  // of the shard after the round, set by RunStore::fold()
  KeyId holder;        // its commit was folded; zero for the master
  std::string holder_name;
  KeyId auditor;  // zero where the work was not audited
  std::string auditor_name;
  WorkVerdict verdict = WorkVerdict::kUnaudited;
  friend bool operator==(const Receipt&, const Receipt&) = default;
};

// The volunteers of a receipt; the store keeps shard and digest separately.
template <typename Visit>
void visit_fields(Receipt& r, const Visit& visit) {
  visit("holder_high", r.holder.high);
  visit("holder_low", r.holder.low);
  visit("holder_name", r.holder_name);
  visit("auditor_high", r.auditor.high);
  visit("auditor_low", r.auditor.low);
  visit("auditor_name", r.auditor_name);
  visit("verdict", r.verdict);
}

// A shard-round whose result counts and which is not folded yet: its sender is trusted, or an audit
// has confirmed it.
struct SettledRound {
  RoundIndex round = 0;
  ShardId shard{};     // also of outcomes and receipt
  ShardOutcome first;  // of the round's first batch
  ShardOutcome rest;   // of all other batches together; zero if there are none
  Receipt receipt;     // without the digest, which the fold sets
  friend bool operator==(const SettledRound&, const SettledRound&) = default;
};

// The store keeps round and shard in the key.
template <typename Visit>
void visit_fields(SettledRound& r, const Visit& visit) {
  visit("first_gradient_digest", r.first.gradient_digest);
  visit("first_loss", r.first.loss);
  visit("first_active", r.first.active);
  visit("rest_gradient_digest", r.rest.gradient_digest);
  visit("rest_loss", r.rest.loss);
  visit("rest_active", r.rest.active);
  visit_fields(r.receipt, visit);
}

struct Receipts {
  std::vector<Receipt> shards;   // one per shard; empty where the round was folded without receipts
  std::vector<KeyId> unaudited;  // strangers who took part and whose work nobody did again
  friend bool operator==(const Receipts&, const Receipts&) = default;
};

// The work of one volunteer, by its identity. Units are training and evaluation units: units_issued
// = units + units_refused + units_expired + units that were out at that time.
struct AccountRecord {
  KeyId identity;  // the key of a stored record
  std::string name;
  std::uint64_t units = 0;          // answered, and the answer counts
  std::uint64_t units_issued = 0;   // sent to it
  std::uint64_t units_refused = 0;  // answered, but not as asked
  std::uint64_t units_expired = 0;  // never answered: lost with the session
  std::uint64_t examples = 0;       // examples x shards trained
  std::uint64_t unit_examples = 0;  // of its training units, whatever their number of shards
  Micros here{};                    // from each Hello to the last message of its session
  Traffic down, up;                 // after its Hello
  std::uint64_t commits = 0;
  std::uint64_t faults = 0;
  std::int64_t last_seen_wall_seconds = 0;  // since 1970, set by the shell
  // Only for the core, not stored:
  bool is_stored = false;  // stored with an earlier round
  bool is_final = false;   // gone with no unit out; a return begins another record

  // Adds the later work of the same volunteer.
  AccountRecord& operator+=(const AccountRecord& later) {
    for (const auto count :
         {&AccountRecord::units, &AccountRecord::units_issued, &AccountRecord::units_refused,
          &AccountRecord::units_expired, &AccountRecord::examples, &AccountRecord::unit_examples,
          &AccountRecord::commits, &AccountRecord::faults}) {
      this->*count += later.*count;
    }
    here += later.here;
    down += later.down;
    up += later.up;
    return *this;
  }

  friend bool operator==(const AccountRecord&, const AccountRecord&) = default;
};

template <typename Visit>
void visit_fields(Traffic& t, const std::string& way, const Visit& visit) {
  visit(("bytes_" + way).c_str(), t.all);
  visit(("unit_bytes_" + way).c_str(), t.units);
  visit(("evaluation_bytes_" + way).c_str(), t.evaluation);
  visit(("commit_bytes_" + way).c_str(), t.commits);
  visit(("shard_bytes_" + way).c_str(), t.shards);
  visit(("point_bytes_" + way).c_str(), t.points);
}

template <typename Visit>
void visit_fields(AccountRecord& r, const Visit& visit) {
  visit("name", r.name);
  visit("units", r.units);
  visit("units_issued", r.units_issued);
  visit("units_refused", r.units_refused);
  visit("units_expired", r.units_expired);
  visit("examples", r.examples);
  visit("unit_examples", r.unit_examples);
  visit("here_us", r.here);
  visit_fields(r.down, "down", visit);
  visit_fields(r.up, "up", visit);
  visit("commits", r.commits);
  visit("faults", r.faults);
  visit("last_seen_wall_seconds", r.last_seen_wall_seconds);
}

}  // namespace gleaner

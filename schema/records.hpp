// Records of a run, from the core that makes them to the store, the page and the tools. The table
// of a record's fields, by their names in JSON, stands beside it. Plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/access/standing.hpp"
#include "common/ids.hpp"
#include "common/model/precision.hpp"
#include "common/model/shard_rows.hpp"

namespace gleaner {

// Precision on test examples.
struct Evaluation {
  std::uint64_t points = 0;  // test examples scored
  bool all_points = false;   // the whole test set
  Precision precision;
  std::uint64_t test_points = 0;  // in the test set
};

// A round that became a checkpoint. Figures that could not be measured are negative.
struct RoundRecord {
  RoundIndex checkpoint = 0;  // rounds folded
  BatchIndex batches = 0;     // trained in the run so far
  std::uint32_t epoch = 0;    // epochs complete
  double loss = -1;           // mean over the round, nats per example
  double active = -1;         // mean over the round, active neurons per example
  double code_length = -1;    // mean length of quantized activations; older programs left it out
  double examples_per_second = -1;  // since the round before, without evaluations
  std::uint32_t volunteers = 0;
  double bytes_down = -1;  // bytes of work units per example and volunteer
  double bytes_up = -1;
  std::uint64_t evaluated = 0;  // test examples scored; 0 while the checkpoint is not evaluated
  bool evaluated_all = false;   // the whole test set
  // Fingerprint of the test file, set by RunStore::put_history(); 0 where an older program
  // evaluated.
  std::uint64_t test = 0;
  Precision precision;
  std::int64_t wall_seconds = 0;  // seconds since 1970, set by the shell
  // Set by RunStore::fold(): halvings of the rates before the round, and rows_digest() of the
  // checkpoint, which is 0 where an older program folded.
  std::uint32_t rate_cuts = 0;
  std::uint64_t rows_digest = 0;

  [[nodiscard]] RoundIndex round() const { return checkpoint - 1; }

  void add(const Evaluation& evaluation) {
    evaluated = evaluation.points;
    evaluated_all = evaluation.all_points;
    precision = evaluation.precision;
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
  visit("wall_seconds", r.wall_seconds);
  visit("rate_cuts", r.rate_cuts);
  visit("rows_digest", r.rows_digest);
}

// How far the work of a shard in a round can be relied on.
enum class WorkVerdict : std::uint8_t {
  kConfirmed,  // an auditor did the same work and got the same
  kTrusted,    // somebody vouches for the volunteer, or it is the master's own work
  kUnaudited,  // a stranger's work that nobody did again
};
inline constexpr std::array<std::string_view, 3> kWorkVerdictNames = {"confirmed", "trusted",
                                                                      "unaudited"};

inline std::string_view name_of(WorkVerdict verdict) {
  return kWorkVerdictNames[static_cast<std::size_t>(verdict)];
}

// Who made a shard what it is after a round.
struct Receipt {
  ShardId shard{};
  ShardDigest digest;  // of the shard after the round, set by RunStore::fold()
  KeyId holder;        // whose commit was folded; zero for the master
  std::string holder_name;
  KeyId auditor;  // zero where the work was not audited
  std::string auditor_name;
  WorkVerdict verdict = WorkVerdict::kUnaudited;
  friend bool operator==(const Receipt&, const Receipt&) = default;
};

// The people of a receipt; the store keeps shard and digest apart.
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

// The receipts of a round.
struct Receipts {
  std::vector<Receipt> shards;   // one per shard; empty where the round was folded without
  std::vector<KeyId> unaudited;  // strangers who took part, and whose work nobody did again
  friend bool operator==(const Receipts&, const Receipts&) = default;
};

}  // namespace gleaner

// Records of a run, from the core that makes them to the store, the page and the tools. The table
// of a record's fields, by their names in JSON, stands beside it. Plain values.
#pragma once

#include <cstdint>

#include "common/ids.hpp"
#include "common/model/precision.hpp"

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

}  // namespace gleaner

// When a checkpoint is evaluated, and the evaluation that is under way. Used from the core only.
//
// Owns the evaluation under way and its last result.
// Invariant: a checkpoint is evaluated at most once, and the run goes on from a checkpoint that is
// due for evaluation only after that.
#pragma once

#include <optional>

#include "master/core/batches/evaluation_run.hpp"
#include "master/core/events/run_setup.hpp"

namespace gleaner {

class Evaluations {
 public:
  // `run` outlives it.
  Evaluations(const RunSetup& run, const ResumePoint& resume)
      : run_(run), evaluated_(resume.is_evaluated ? resume.checkpoint : 0) {
    last_.precision = resume.last_precision;
  }

  // Whether the checkpoint is to be evaluated and has not been.
  [[nodiscard]] bool owes(RoundIndex checkpoint) const {
    return run_.config.test_points > 0 && evaluated_ < checkpoint &&
           run_.plan.evaluates_at(checkpoint, run_.config.evaluate_every_epochs);
  }

  void begin(Instant now);
  // The evaluation under way is done, and its result is on its way to the store.
  void finished(RoundIndex checkpoint, const Evaluation& result);

  void recorded() { is_recorded_ = true; }

  // When the last evaluation began.
  [[nodiscard]] Instant began() const { return began_; }

  // The evaluation under way.
  [[nodiscard]] std::optional<EvaluationRun>& current() { return current_; }

  [[nodiscard]] const std::optional<EvaluationRun>& current() const { return current_; }

  // Whether the last result is in the store.
  [[nodiscard]] bool is_recorded() const { return is_recorded_; }

  // The last checkpoint whose evaluation is done.
  [[nodiscard]] RoundIndex evaluated() const { return evaluated_; }

  [[nodiscard]] const Evaluation& last() const { return last_; }

 private:
  const RunSetup& run_;
  std::optional<EvaluationRun> current_;
  Instant began_{};
  RoundIndex evaluated_;
  bool is_recorded_ = true;
  Evaluation last_;
};

}  // namespace gleaner

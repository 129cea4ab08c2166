// Which checkpoints are evaluated, and the evaluation under way. Used from the core only.
// Invariant: a checkpoint is evaluated at most once. A run does not go on from a checkpoint that is
// due for evaluation until it is evaluated.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "master/core/core_config.hpp"
#include "master/core/events.hpp"

namespace gleaner {

// Without a hidden layer: test examples that one unit scores, and the number of such units for one
// shard.
inline constexpr std::uint32_t kScoreChunk = kBatchExamplesMax;

inline std::uint32_t score_chunks(const CoreConfig& config) {
  return static_cast<std::uint32_t>((config.evaluated_points() + kScoreChunk - 1) / kScoreChunk);
}

// One evaluation of a checkpoint: test examples in chunks, each scored by every output shard. Pure
// state; used from the core only. With a hidden layer, training stands still meanwhile, so that
// every shard is at the checkpoint.
class EvaluationRun {
 public:
  // Scores examples [0, points) in chunks of `chunk`, at most `in_flight` chunks at a time.
  EvaluationRun(std::uint64_t points, std::uint32_t chunk, std::uint32_t in_flight,
                std::uint32_t shards, std::uint32_t top_k);

  // Takes examples whose best neurons over all shards are known, by chunk.
  EvaluationRun(std::uint64_t points, std::uint32_t chunk, std::uint32_t top_k,
                std::vector<std::vector<ScoredNeuron>> best);

  // Worker tasks that may run now: forward passes of further chunks, scores of complete chunks, and
  // at the end the metrics.
  std::vector<WorkerTask> advance();

  void forward_done(const EvalForwardDone& done);

  // The first chunk (`begin` is its first example) that some of `ready` have neither scored nor
  // been assigned, and these shards. `shards` is empty if there is none.
  struct Assignment {
    std::uint64_t begin = 0;
    SharedBytes packed;
    std::vector<ShardId> shards;
  };

  [[nodiscard]] Assignment next_assignment(const std::vector<ShardId>& ready) const;
  void assigned(std::uint64_t begin, const std::vector<ShardId>& shards);
  // The holder vanished: its shards are to be assigned again.
  void unassigned(std::uint64_t begin, const std::vector<ShardId>& shards);
  void scored(std::uint64_t begin, const std::vector<ShardId>& shards,
              std::vector<ScoredNeuron> best);
  // Examples of the chunk; 0 when it is not open.
  [[nodiscard]] std::uint64_t examples_in(std::uint64_t begin) const;

  [[nodiscard]] std::uint64_t points() const { return points_; }

  [[nodiscard]] std::uint64_t points_scored() const { return points_scored_; }

 private:
  enum class ShardState : std::uint8_t { kOpen, kAssigned, kScored };

  struct Chunk {
    std::uint64_t end = 0;
    SharedBytes packed;  // null until the forward pass is done
    std::vector<ShardState> shards;
    std::uint32_t scored = 0;
    std::vector<std::vector<ScoredNeuron>> lists;
  };

  std::uint64_t points_;
  std::uint32_t chunk_;
  std::uint32_t in_flight_;
  std::uint32_t shards_;
  std::uint32_t top_k_;
  std::uint64_t next_point_ = 0;
  std::uint64_t points_scored_ = 0;
  bool finish_issued_ = false;
  std::map<std::uint64_t, Chunk> open_;  // by first example
};

class Evaluations {
 public:
  Evaluations(const RunSetup& run, const ResumePoint& resume)
      : run_(run), evaluated_(resume.is_evaluated ? resume.checkpoint : 0) {
    last_.precision = resume.last_precision;
  }

  // Whether the checkpoint is due for evaluation and has not been evaluated.
  [[nodiscard]] bool owes(RoundIndex checkpoint) const {
    return run_.config.test_points > 0 && evaluated_ < checkpoint &&
           run_.plan.evaluates_at(checkpoint, run_.config.evaluate_every_epochs);
  }

  void begin(Instant now);
  // Begins with known best neurons, in chunks of kScoreChunk.
  void begin(Instant now, std::vector<std::vector<ScoredNeuron>> best);
  // The evaluation is done, and its result is on its way to the store.
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

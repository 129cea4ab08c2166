// One evaluation of a checkpoint: held-out points in chunks, each scored by every output shard.
// Pure state; used from the core only. Training stands still meanwhile, so every shard is at the
// checkpoint, whoever holds it.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "master/core/events/events.hpp"

namespace gleaner {

class EvaluationRun {
 public:
  // Scores points [0, points) in chunks of `chunk`; at most `in_flight` chunks at a time.
  EvaluationRun(std::uint64_t points, std::uint32_t chunk, std::uint32_t in_flight,
                std::uint32_t shards, std::uint32_t top_k);

  // Worker tasks that may run now: forward passes of further chunks, scores of complete ones, and
  // at last the end of the metrics.
  std::vector<WorkerTask> advance();

  void forward_done(const EvalForwardDone& done);

  // A chunk (by first point) that some of `ready` have yet to score and are not scoring already,
  // and these shards; first chunk first. An empty list when there is none.
  struct Assignment {
    std::uint64_t begin = 0;
    SharedBytes packed;
    std::vector<ShardId> shards;
  };

  [[nodiscard]] Assignment next_assignment(const std::vector<ShardId>& ready) const;
  void assigned(std::uint64_t begin, const std::vector<ShardId>& shards);
  // The holder vanished: its shards must be assigned again.
  void unassigned(std::uint64_t begin, const std::vector<ShardId>& shards);
  void scored(std::uint64_t begin, const std::vector<ShardId>& shards,
              std::vector<ScoredNeuron> best);
  // Points of the chunk, 0 when it is not open.
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
  std::map<std::uint64_t, Chunk> open_;  // by first point
};

}  // namespace gleaner

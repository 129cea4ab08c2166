#include "master/core/evaluations.hpp"

#include <algorithm>
#include <utility>

#include "common/result.hpp"

namespace gleaner {

EvaluationRun::EvaluationRun(std::uint64_t points, std::uint32_t chunk, std::uint32_t in_flight,
                             std::uint32_t shards, std::uint32_t top_k)
    : points_(points), chunk_(chunk), in_flight_(in_flight), shards_(shards), top_k_(top_k) {
  GLEANER_CHECK(points_ > 0 && chunk_ > 0 && in_flight_ > 0);
}

EvaluationRun::EvaluationRun(std::uint64_t points, std::uint32_t chunk, std::uint32_t top_k,
                             std::vector<std::vector<ScoredNeuron>> best)
    : EvaluationRun(points, chunk, 1, 1, top_k) {
  for (std::vector<ScoredNeuron>& list : best) {
    Chunk& whole = open_[next_point_];
    next_point_ = whole.end = std::min(next_point_ + chunk, points);
    whole.scored = 1;
    whole.lists.push_back(std::move(list));
  }
}

std::vector<WorkerTask> EvaluationRun::advance() {
  std::vector<WorkerTask> tasks;
  // Chunks are scored in the order of their examples, so that sums over them have one order.
  while (!open_.empty() && open_.begin()->second.scored == shards_) {
    auto [begin, chunk] = std::move(*open_.begin());
    open_.erase(open_.begin());
    points_scored_ = chunk.end;
    tasks.emplace_back(EvalScoreTask{begin, chunk.end, top_k_, std::move(chunk.lists)});
  }
  while (next_point_ < points_ && open_.size() < in_flight_) {
    const std::uint64_t end = std::min(next_point_ + chunk_, points_);
    Chunk chunk;
    chunk.end = end;
    chunk.shards.resize(shards_, ShardState::kOpen);
    open_.emplace(next_point_, std::move(chunk));
    tasks.emplace_back(EvalForwardTask{next_point_, end});
    next_point_ = end;
  }
  if (points_scored_ == points_ && !finish_issued_) {
    finish_issued_ = true;
    tasks.emplace_back(EvalFinishTask{});
  }
  return tasks;
}

void EvaluationRun::forward_done(const EvalForwardDone& done) {
  const auto chunk = open_.find(done.begin);
  GLEANER_CHECK(chunk != open_.end());
  chunk->second.packed = done.packed;
}

EvaluationRun::Assignment EvaluationRun::next_assignment(const std::vector<ShardId>& ready) const {
  for (const auto& [begin, chunk] : open_) {
    if (!chunk.packed) continue;
    Assignment assignment{begin, chunk.packed, {}};
    for (const ShardId shard : ready) {
      if (chunk.shards[raw(shard)] == ShardState::kOpen) assignment.shards.push_back(shard);
    }
    if (!assignment.shards.empty()) return assignment;
  }
  return {};
}

void EvaluationRun::assigned(std::uint64_t begin, const std::vector<ShardId>& shards) {
  for (const ShardId shard : shards) {
    open_.at(begin).shards[raw(shard)] = ShardState::kAssigned;
  }
}

void EvaluationRun::unassigned(std::uint64_t begin, const std::vector<ShardId>& shards) {
  for (const ShardId shard : shards) open_.at(begin).shards[raw(shard)] = ShardState::kOpen;
}

void EvaluationRun::scored(std::uint64_t begin, const std::vector<ShardId>& shards,
                           std::vector<ScoredNeuron> best) {
  Chunk& chunk = open_.at(begin);
  for (const ShardId shard : shards) {
    GLEANER_CHECK(chunk.shards[raw(shard)] == ShardState::kAssigned);
    chunk.shards[raw(shard)] = ShardState::kScored;
    ++chunk.scored;
  }
  chunk.lists.push_back(std::move(best));
}

std::uint64_t EvaluationRun::examples_in(std::uint64_t begin) const {
  const auto chunk = open_.find(begin);
  return chunk == open_.end() ? 0 : chunk->second.end - begin;
}

void Evaluations::begin(Instant now) {
  began_ = now;
  current_.emplace(run_.config.evaluated_points(), run_.config.evaluate_chunk,
                   run_.config.evaluate_chunks_in_flight, run_.map.output_shards(),
                   run_.config.top_k);
}

void Evaluations::begin(Instant now, std::vector<std::vector<ScoredNeuron>> best) {
  began_ = now;
  current_.emplace(run_.config.evaluated_points(), kScoreChunk, run_.config.top_k, std::move(best));
}

void Evaluations::finished(RoundIndex checkpoint, const Evaluation& result) {
  last_ = result;
  current_.reset();
  evaluated_ = checkpoint;
  is_recorded_ = false;
}

}  // namespace gleaner

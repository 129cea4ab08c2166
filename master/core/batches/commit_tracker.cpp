#include "master/core/batches/commit_tracker.hpp"

namespace gleaner {

void CommitTracker::expect(RoundIndex round, ShardId shard, std::uint32_t parts) {
  rounds_[round].shards[shard].parts = parts;
}

bool CommitTracker::note(RoundIndex round, ShardId shard, std::uint32_t part, std::uint32_t parts,
                         const Fingerprint& content) {
  Progress& progress = rounds_[round].shards[shard];
  if (progress.parts != 0 && progress.parts != parts) return false;
  return progress.contents.emplace(part, content).first->second == content;
}

bool CommitTracker::staged(RoundIndex round, ShardId shard, std::uint32_t part) {
  Round& open = rounds_[round];
  Progress& progress = open.shards[shard];
  const bool was_complete = progress.is_complete();
  progress.stored.insert(part);
  const bool completes = !was_complete && progress.is_complete();
  if (completes) ++open.complete;
  return completes;
}

bool CommitTracker::is_last_part(RoundIndex round, ShardId shard, std::uint32_t part) const {
  const auto open = rounds_.find(round);
  if (open == rounds_.end()) return false;
  const auto progress = open->second.shards.find(shard);
  return progress != open->second.shards.end() && part + 1 == progress->second.parts;
}

bool CommitTracker::is_whole(RoundIndex round) const {
  const auto open = rounds_.find(round);
  return open != rounds_.end() && open->second.complete == shards_;
}

}  // namespace gleaner

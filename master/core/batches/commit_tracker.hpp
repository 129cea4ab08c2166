// Which parts of which commits are stored, and thus when a round is whole. Pure state; used from
// the core only. Counts output and input shards alike.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "common/ids.hpp"
#include "master/core/batches/fingerprint.hpp"

namespace gleaner {

class CommitTracker {
 public:
  explicit CommitTracker(std::uint32_t shards) : shards_(shards) {}

  // A part arrived and is on its way to the store: `parts` is the commit's part count.
  void expect(RoundIndex round, ShardId shard, std::uint32_t parts);
  // Remembers what a part is. False when it was something else before: the first one stands, and
  // this one is not to be stored.
  bool note(RoundIndex round, ShardId shard, std::uint32_t part, std::uint32_t parts,
            const Fingerprint& content);
  // A part is stored. Returns true when it completes the shard's commit.
  bool staged(RoundIndex round, ShardId shard, std::uint32_t part);

  // Whether `part` is the last of the shard's commit, as its sender said.
  [[nodiscard]] bool is_last_part(RoundIndex round, ShardId shard, std::uint32_t part) const;
  // Every shard's commit of `round` is stored.
  [[nodiscard]] bool is_whole(RoundIndex round) const;

  void forget(RoundIndex round) { rounds_.erase(round); }

 private:
  struct Progress {
    std::uint32_t parts = 0;
    std::set<std::uint32_t> stored;
    std::map<std::uint32_t, Fingerprint> contents;  // of the parts that have arrived

    [[nodiscard]] bool is_complete() const { return parts > 0 && stored.size() == parts; }
  };

  struct Round {
    std::map<ShardId, Progress> shards;
    std::uint32_t complete = 0;
  };

  std::uint32_t shards_;
  std::map<RoundIndex, Round> rounds_;
};

}  // namespace gleaner

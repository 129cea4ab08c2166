// The shards of one layer that a volunteer holds, each under its lease: being loaded, loaded, or
// stepped back and offered. This class decides for all layers what a lease allows. A trainer
// derives from it, makes the shards and computes on them. One thread at a time.
//
// Every claim of a message is checked and refused with kProtocol or kStaleLease; a refused call
// changes nothing.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/model/model_config.hpp"
#include "common/model/run_plan.hpp"
#include "common/model/shard_map.hpp"
#include "common/result.hpp"
#include "common/work/units.hpp"

namespace gleaner {

// The error for a message that no correct master sends.
template <typename... Args>
Error refuse(fmt::format_string<Args...> format, Args&&... args) {
  return {ErrorCode::kProtocol, fmt::format(format, std::forward<Args>(args)...)};
}

// Checks a grant against the run: the shard exists, counts have the right size, and the position
// fits the checkpoint.
Result<void> check_grant(const LeaseGrant& grant, const ModelConfig& config, const ShardMap& map,
                         const RunPlan& plan);

// Records which chunks of a grant have arrived. Chunks come from a peer: each is checked in full
// before any of it is used, and a refused chunk changes nothing. One thread.
class ChunkLedger {
 public:
  // Requires check_grant(grant). Borrows configuration and map.
  ChunkLedger(const LeaseGrant& grant, const ModelConfig& config, const ShardMap& map);

  // Records the chunk. Refuses an index out of range, a repeated chunk, and rows that do not fit.
  Result<void> accept(const ShardChunk& chunk);
  // The error names a missing chunk.
  [[nodiscard]] Result<void> check_complete() const;

  // Whether the chunk has rows of the checkpoint, not of a hand-over on top of it.
  [[nodiscard]] bool is_base(std::uint32_t chunk) const { return chunk < base_chunks_; }

  // Whether a chunk of the checkpoint held the row.
  [[nodiscard]] bool has_base(std::size_t row) const { return has_base_[row] != 0; }

  [[nodiscard]] std::uint64_t memory_bytes() const {
    return has_chunk_.size() + has_base_.size() + has_overlay_.size();
  }

 private:
  const ModelConfig& config_;
  const ShardMap& map_;
  LeaseRef lease_;
  std::uint32_t base_chunks_;
  std::vector<std::uint8_t> has_chunk_;
  std::vector<std::uint8_t> has_base_;     // rows
  std::vector<std::uint8_t> has_overlay_;  // rows
};

// A shard that LeasedShards can load and step back. It begins in the initial state.
class LeasedShard {
 public:
  virtual ~LeasedShard() = default;

  // Loading: rows of a checkpoint, then initial values for all rows that the ledger has not seen,
  // then rows changed since the checkpoint. The rows have been checked (check_rows).
  virtual Result<void> load(const ShardRows& rows) = 0;
  virtual void load_initial(const ChunkLedger& ledger) = 0;
  virtual Result<void> load_touched(const ShardRows& rows) = 0;
  // Called after the last row, and after a step back.
  virtual void finish_loading() = 0;
  // Returns false and changes nothing when the shard cannot go `commits` commits back.
  [[nodiscard]] virtual bool step_back(std::uint32_t commits) = 0;
  // The rows changed since the last commit, in at least one part.
  [[nodiscard]] virtual std::vector<ShardRows> touched_rows() const = 0;
  // Equal to the store's digest. Requires no change since the last commit.
  [[nodiscard]] virtual ShardDigest digest() const = 0;
  [[nodiscard]] virtual std::uint64_t memory_bytes() const = 0;
};

class LeasedShards {
 public:
  virtual ~LeasedShards() = default;
  LeasedShards(const LeasedShards&) = delete;
  LeasedShards& operator=(const LeasedShards&) = delete;

  // Loading: begin, then each chunk once in any order, then finish. begin_load() drops the shard's
  // state under an earlier lease before it makes the new one, so that the machine need not hold
  // both.
  Result<void> begin_load(const LeaseGrant& grant);
  Result<void> load_chunk(const ShardChunk& chunk);
  Result<ShardReady> finish_load(const LeaseRef& lease);

  // Steps every loaded shard back to `checkpoint` and returns these shards, ascending. Forgets
  // shards that cannot go back and shards being loaded. Earlier leases become invalid: the master
  // adopts, replaces or drops each shard.
  std::vector<OfferedShard> step_back(RoundIndex checkpoint);
  // Puts a shard that was stepped back under the grant's lease, ready to be trained. Requires a
  // grant for a held shard, as of the shard's checkpoint.
  Result<ShardReady> adopt(const LeaseGrant& grant);
  // Forgets the shard in any state. Ignores an unknown lease.
  void drop(const LeaseRef& lease);

  void drop_all() {
    ++version_;
    holdings_.clear();
  }

  // Returns the rows changed since the last commit, in parts, and forgets the shard.
  Result<std::vector<HandOver>> hand_over(const LeaseRef& lease);

  [[nodiscard]] std::vector<LeaseRef> leases() const;
  // Bytes held for shards, for the memory limit and the status line.
  [[nodiscard]] virtual std::uint64_t memory_bytes() const;

 protected:
  // A shard under a lease: being loaded, or loaded and standing before `next_batch`.
  struct Holding {
    LeaseRef lease;
    RoundIndex base_round = 0;  // checkpoint of the shard's last commit
    BatchIndex next_batch = 0;
    std::shared_ptr<LeasedShard> shard;    // shared with the thread that trains it
    std::unique_ptr<ChunkLedger> loading;  // null once loaded
    std::vector<ShardRows> overlays;       // loaded last, on top of the base
    bool is_offered = false;               // stepped back; the lease is an earlier one
  };

  LeasedShards(const ModelConfig& config, bool are_output)
      : config_(config), map_(config_), plan_(config_), are_output_(are_output) {}

  // The initial shard. Requires check_grant(grant).
  virtual std::unique_ptr<LeasedShard> make_shard(const LeaseGrant& grant) = 0;

  // The loaded shards under exactly these leases.
  [[nodiscard]] Result<std::vector<Holding*>> find_loaded(std::span<const LeaseRef> leases) const;
  // As find_loaded(); the shards must also stand before `batch`, the unit's first batch.
  [[nodiscard]] Result<std::vector<Holding*>> find_at(std::span<const LeaseRef> leases,
                                                      BatchIndex batch) const;
  // Notes that the shard has ended `round` with the update `parts`, and appends its commit.
  static void end_round(Holding& holding, RoundIndex round, std::vector<SparseUpdate> parts,
                        std::vector<ShardCommit>& commits);

  // All shards loaded under a valid lease, ascending.
  [[nodiscard]] std::vector<Holding*> loaded() const;

  // The shards of these holdings, which the trainer made as `Shard`.
  template <typename Shard>
  static std::vector<Shard*> shards_of(std::span<Holding* const> held) {
    std::vector<Shard*> shards;
    for (const Holding* holding : held) shards.push_back(static_cast<Shard*>(holding->shard.get()));
    return shards;
  }

  // Grows whenever the result of loaded() may have changed.
  [[nodiscard]] std::uint64_t version() const { return version_; }

  const ModelConfig config_;
  const ShardMap map_;
  const RunPlan plan_;

 private:
  // The holding under exactly this lease, or null.
  [[nodiscard]] Holding* find(const LeaseRef& lease) const;

  bool are_output_;
  std::map<ShardId, std::unique_ptr<Holding>> holdings_;
  std::uint64_t version_ = 0;
};

}  // namespace gleaner

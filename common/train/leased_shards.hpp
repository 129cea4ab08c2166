// The shards of one layer that a volunteer holds, each under its lease: being loaded, loaded, or
// stepped back and offered. What a lease allows is decided here for all layers; a trainer derives
// from this, makes the shards and computes on them. One thread at a time.
//
// Anything a message claims is checked and refused with kProtocol or kStaleLease; a refused call
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

// The error for a message that no master of ours sends.
template <typename... Args>
Error refuse(fmt::format_string<Args...> format, Args&&... args) {
  return {ErrorCode::kProtocol, fmt::format(format, std::forward<Args>(args)...)};
}

// Which chunks of a grant have come. Chunks come from a peer, so each is checked in full before
// anything of it is used; a refused one changes nothing. One thread.

// Checks a grant against the run: a shard that exists, counts of the right size, a position that
// fits its checkpoint.
Result<void> check_grant(const LeaseGrant& grant, const ModelConfig& config, const ShardMap& map,
                         const RunPlan& plan);

class ChunkLedger {
 public:
  // Requires check_grant(grant). Borrows configuration and map.
  ChunkLedger(const LeaseGrant& grant, const ModelConfig& config, const ShardMap& map);

  // Notes the chunk. Refuses one out of range, one that came before, and rows that do not fit.
  Result<void> accept(const ShardChunk& chunk);
  // Names a chunk that has not come.
  [[nodiscard]] Result<void> check_complete() const;

  // Rows of a checkpoint, not of a hand-over on top of it.
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

// A shard as LeasedShards loads it and steps it back. It begins as the initial one.
class LeasedShard {
 public:
  virtual ~LeasedShard() = default;

  // Rows of a checkpoint; then those of the initial shard that the ledger has not seen; then rows
  // that have moved on from the checkpoint. Rows have been checked (check_rows).
  virtual Result<void> load(const ShardRows& rows) = 0;
  virtual void load_initial(const ChunkLedger& ledger) = 0;
  virtual Result<void> load_touched(const ShardRows& rows) = 0;
  // After the last row, and after a step back.
  virtual void finish_loading() = 0;
  // False, with nothing changed, when it cannot go `commits` commits back.
  [[nodiscard]] virtual bool step_back(std::uint32_t commits) = 0;
  // The state beyond its last commit, in parts, at least one.
  [[nodiscard]] virtual std::vector<ShardRows> touched_rows() const = 0;
  // As a store has the shard. Requires that nothing is touched since its last commit.
  [[nodiscard]] virtual ShardDigest digest() const = 0;
  [[nodiscard]] virtual std::uint64_t memory_bytes() const = 0;
};

class LeasedShards {
 public:
  virtual ~LeasedShards() = default;
  LeasedShards(const LeasedShards&) = delete;
  LeasedShards& operator=(const LeasedShards&) = delete;

  // Loading: begin, then each chunk once in any order, then finish. A shard being loaded or loaded
  // already under an earlier lease is replaced; it goes before the new one is made, so that the
  // machine need not hold both.
  Result<void> begin_load(const LeaseGrant& grant);
  Result<void> load_chunk(const ShardChunk& chunk);
  Result<ShardReady> finish_load(const LeaseRef& lease);

  // Steps every loaded shard back to `checkpoint` and returns those, ascending. Shards that cannot
  // go there and shards being loaded are forgotten. No earlier lease counts any more: a shard is
  // adopted, replaced or dropped.
  std::vector<OfferedShard> step_back(RoundIndex checkpoint);
  // Puts a shard that was stepped back under the grant's lease, ready to be trained. Requires a
  // grant that is held, as of the shard's checkpoint.
  Result<ShardReady> adopt(const LeaseGrant& grant);
  // Forgets the shard, whatever its state; unknown ones are ignored.
  void drop(const LeaseRef& lease);

  void drop_all() {
    ++version_;
    holdings_.clear();
  }

  // The shard's state beyond its last commit, in parts; then forgets the shard.
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
    std::shared_ptr<LeasedShard> shard;    // a thread that trains it has it as well
    std::unique_ptr<ChunkLedger> loading;  // null once loaded
    std::vector<ShardRows> overlays;       // loaded last, as they need the base beneath them
    bool is_offered = false;               // stepped back; the lease is an earlier one
  };

  // Holds output shards, or input shards.
  LeasedShards(const ModelConfig& config, bool are_output)
      : config_(config), map_(config_), plan_(config_), are_output_(are_output) {}

  // The initial shard. Requires check_grant(grant).
  virtual std::unique_ptr<LeasedShard> make_shard(const LeaseGrant& grant) = 0;

  // The loaded shards under exactly these leases.
  [[nodiscard]] Result<std::vector<Holding*>> find_loaded(std::span<const LeaseRef> leases) const;
  // As find_loaded(); the shards must stand before `batch`, a unit's first.
  [[nodiscard]] Result<std::vector<Holding*>> find_at(std::span<const LeaseRef> leases,
                                                      BatchIndex batch) const;
  // The shard has ended `round` with this update: appends its commit.
  static void end_round(Holding& holding, RoundIndex round, std::vector<SparseUpdate> parts,
                        std::vector<ShardCommit>& commits);

  // All that are loaded under a lease that counts, ascending.
  [[nodiscard]] std::vector<Holding*> loaded() const;

  // Their shards, which the trainer made as `Shard`.
  template <typename Shard>
  static std::vector<Shard*> shards_of(std::span<Holding* const> held) {
    std::vector<Shard*> shards;
    for (const Holding* holding : held) shards.push_back(static_cast<Shard*>(holding->shard.get()));
    return shards;
  }

  // Counts up whenever what loaded() says may have changed.
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

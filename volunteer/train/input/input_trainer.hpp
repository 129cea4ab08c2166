// The input shards a volunteer holds and everything that is computed on them; what ShardTrainer is
// for output shards. Results depend on the shards' state, the messages and the points alone. One
// thread at a time; loops run on the pool.
//
// Anything a message claims is checked (ranges, sizes, lease, order of steps) and refused with
// kProtocol or kStaleLease.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "common/dataset/packed_dataset.hpp"
#include "common/model/model_config.hpp"
#include "common/model/run_plan.hpp"
#include "common/model/shard_map.hpp"
#include "common/result.hpp"
#include "common/thread_pool.hpp"
#include "schema/input_parts.hpp"
#include "schema/messages.hpp"
#include "volunteer/train/chunk_ledger.hpp"
#include "volunteer/train/input/input_layer.hpp"

namespace gleaner {

class InputTrainer {
 public:
  // `config` must be valid; `pool` outlives the trainer.
  InputTrainer(const ModelConfig& config, ThreadPool& pool);

  // Loading: begin, then each chunk once in any order, then finish. A shard being loaded or loaded
  // already under an earlier lease is replaced.
  Result<void> begin_load(const LeaseGrant& grant);
  Result<void> load_chunk(const ShardChunk& chunk);
  Result<ShardReady> finish_load(const LeaseRef& lease);
  // As ShardTrainer's: what is held as of the checkpoint, and no earlier lease counts any more.
  std::vector<OfferedShard> step_back(RoundIndex checkpoint);
  Result<ShardReady> adopt(const LeaseGrant& grant);
  // Forgets the shard, whatever its state; unknown ones are ignored.
  void drop(const LeaseRef& lease);

  struct UnitOutcome {
    InputResult result;                // the caller measures `compute_us`
    std::vector<ShardCommit> commits;  // of rounds whose last update the unit did
  };

  // That the unit's steps are of this run. To be asked before their points are looked for.
  Result<void> check_steps(const InputUnit& unit) const;
  // That it can be run now: every lease is loaded, and the steps follow from where the shards
  // stand. Requires check_steps(unit).
  Result<void> check(const InputUnit& unit) const;
  // Requires check(unit). `examples` are those of each step, without labels. Malformed gradients
  // are refused; the shards are unspecified then.
  Result<UnitOutcome> run(const InputUnit& unit,
                          std::span<const std::span<const ExampleView>> examples);
  // The shard's state beyond its last commit, in parts; then forgets the shard.
  Result<std::vector<HandOver>> hand_over(const LeaseRef& lease);

  // Bytes held for shards, for the memory limit and the status line.
  [[nodiscard]] std::uint64_t memory_bytes() const;

  // Estimate of what holding a shard of this configuration takes.
  static std::uint64_t shard_bytes(const ModelConfig& config);

 private:
  // A shard under a lease: being loaded, or loaded and standing before `next_batch`.
  struct Holding {
    LeaseRef lease;
    RoundIndex base_round = 0;  // checkpoint of the shard's last commit
    BatchIndex next_batch = 0;
    std::unique_ptr<ChunkLedger> loading;  // null once loaded
    std::vector<ShardRows> overlays;       // applied last, as they need the base beneath them
    bool is_offered = false;               // stepped back; the lease is an earlier one
  };

  // The holding under exactly this lease, or null.
  const Holding* find(const LeaseRef& lease) const;
  Holding* find(const LeaseRef& lease);
  Result<void> check_order(const InputStep& step, BatchIndex& next_batch) const;
  Result<void> update(const InputStep& step, const std::vector<LeaseRef>& leases,
                      std::span<const ShardId> shards, std::span<const ExampleView> examples);
  void end_round(RoundIndex round, Holding& holding, std::vector<ShardCommit>& commits);
  [[nodiscard]] UnitColumns columns(ShardId shard) const;

  const ModelConfig config_;
  const ShardMap map_;
  const RunPlan plan_;
  InputLayer layer_;
  std::map<ShardId, Holding> holdings_;
};

}  // namespace gleaner

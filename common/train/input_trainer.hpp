// The input shards a volunteer holds and everything that is computed on them; what ShardTrainer is
// for output shards. Results depend on the shards' state, the messages and the points alone. One
// thread at a time; loops run on the pool.
//
// Anything a message claims is checked (ranges, sizes, lease, order of steps) and refused with
// kProtocol or kStaleLease.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/data/packed_dataset.hpp"
#include "common/model/model_config.hpp"
#include "common/model/run_plan.hpp"
#include "common/model/shard_map.hpp"
#include "common/result.hpp"
#include "common/thread_pool.hpp"
#include "common/train/input_layer.hpp"
#include "common/train/leased_shards.hpp"
#include "schema/input_parts.hpp"
#include "schema/messages.hpp"

namespace gleaner {

// A shard of an input layer as LeasedShards wants it: held by the layer as long as this exists. One
// thread at a time.
class HeldInputShard {
 public:
  // The layer, in which the shard is not held, outlives this.
  HeldInputShard(InputLayer& layer, ShardId shard) : layer_(layer), shard_(shard) {
    layer_.hold(shard_);
  }

  ~HeldInputShard() { layer_.drop(shard_); }

  HeldInputShard(const HeldInputShard&) = delete;
  HeldInputShard& operator=(const HeldInputShard&) = delete;

  Result<void> load(const ShardRows& rows) { return layer_.load_rows(shard_, rows); }

  Result<void> load_touched(const ShardRows& rows) {
    return layer_.load_touched_rows(shard_, rows);
  }

  // The layer begins with all of them.
  void load_initial(const ChunkLedger& /*ledger*/) {}

  void finish_loading() {}

  bool step_back(std::uint32_t commits) { return layer_.step_back(shard_, commits); }

  [[nodiscard]] std::vector<ShardRows> touched_rows() const { return layer_.touched_rows(shard_); }

  // The layer counts it.
  [[nodiscard]] std::uint64_t memory_bytes() const { return 0; }

 private:
  InputLayer& layer_;
  ShardId shard_;
};

class InputTrainer {
 public:
  // `config` must be valid; `pool` outlives the trainer.
  InputTrainer(const ModelConfig& config, ThreadPool& pool);

  // As LeasedShards says.
  Result<void> begin_load(const LeaseGrant& grant);

  Result<void> load_chunk(const ShardChunk& chunk) { return shards_.load_chunk(chunk); }

  Result<ShardReady> finish_load(const LeaseRef& lease) { return shards_.finish_load(lease); }

  std::vector<OfferedShard> step_back(RoundIndex checkpoint);

  Result<ShardReady> adopt(const LeaseGrant& grant) { return shards_.adopt(grant); }

  void drop(const LeaseRef& lease) { shards_.drop(lease); }

  Result<std::vector<HandOver>> hand_over(const LeaseRef& lease) {
    return shards_.hand_over(lease);
  }

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

  // Bytes held for shards, for the memory limit and the status line.
  [[nodiscard]] std::uint64_t memory_bytes() const {
    return layer_.memory_bytes() + shards_.memory_bytes();
  }

  // Estimate of what holding a shard of this configuration takes.
  static std::uint64_t shard_bytes(const ModelConfig& config);

 private:
  Result<void> check_order(const InputStep& step, BatchIndex& next_batch) const;
  Result<void> update(const InputStep& step, const std::vector<LeaseRef>& leases,
                      std::span<const ShardId> shards, std::span<const ExampleView> examples);
  [[nodiscard]] UnitColumns columns(ShardId shard) const;

  const ModelConfig config_;
  const ShardMap map_;
  const RunPlan plan_;
  InputLayer layer_;
  LeasedShards<HeldInputShard> shards_;
};

}  // namespace gleaner

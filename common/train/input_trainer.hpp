// The input shards that a volunteer holds and the computations on them, as ShardTrainer is for
// output shards. Results depend on the shards' state, the messages and the examples only. One
// thread at a time; loops run on the pool.
//
// Every claim of a message is checked (ranges, sizes, lease, order of steps) and refused with
// kProtocol or kStaleLease.
#pragma once

#include <cstdint>
#include <memory>
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
#include "common/work/input_parts.hpp"
#include "common/work/units.hpp"

namespace gleaner {

class InputTrainer final : public LeasedShards {
 public:
  // `config` must be valid; `pool` outlives the trainer.
  InputTrainer(const ModelConfig& config, ThreadPool& pool);

  ~InputTrainer() override { drop_all(); }

  struct UnitOutcome {
    InputResult result;                // without `compute_us`, which the caller measures
    std::vector<ShardCommit> commits;  // of rounds whose last update the unit made
  };

  // Checks that the unit's steps belong to this run. Must precede the search for their examples.
  Result<void> check_steps(const InputUnit& unit) const;
  // Checks that the unit can run now: every lease is loaded, and the steps follow from the shards'
  // next batch. Requires check_steps(unit).
  Result<void> check(const InputUnit& unit) const;
  // Requires check(unit). `examples` has the examples of each step, without labels. Refuses
  // malformed gradients; the shards are unspecified then.
  Result<UnitOutcome> run(const InputUnit& unit,
                          std::span<const std::span<const ExampleView>> examples);

  [[nodiscard]] std::uint64_t memory_bytes() const override {
    return layer_.memory_bytes() + LeasedShards::memory_bytes();
  }

  // Estimated bytes of a held shard of this configuration.
  static std::uint64_t shard_bytes(const ModelConfig& config);

 private:
  std::unique_ptr<LeasedShard> make_shard(const LeaseGrant& grant) override;
  Result<void> check_order(const InputStep& step, BatchIndex& next_batch) const;
  Result<void> update(const InputStep& step, const std::vector<LeaseRef>& leases,
                      std::span<const ShardId> shards, std::span<const ExampleView> examples);
  [[nodiscard]] UnitColumns columns(ShardId shard) const;

  InputLayer layer_;
};

}  // namespace gleaner

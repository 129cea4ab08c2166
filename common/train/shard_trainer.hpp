// The output shards that a volunteer holds and the computations on them. Results depend on the
// shards' state and the messages only: not on thread count, SIMD level, or the other shards held.
// One thread at a time; loops run on the pool.
//
// Every claim of a message is checked (ranges, sizes, lease, order of batches) and refused with
// kProtocol or kStaleLease; a refused call changes nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/model/model_config.hpp"
#include "common/model/run_plan.hpp"
#include "common/model/shard_map.hpp"
#include "common/result.hpp"
#include "common/thread_pool.hpp"
#include "common/train/leased_shards.hpp"
#include "common/work/quantized_activations.hpp"
#include "common/work/units.hpp"

namespace gleaner {

// Unpacks quantized activations of `config.hidden` units whose scales are at most kHiddenScaleMax.
// Refuses anything else with kProtocol; the error calls them `what`.
Result<QuantizedActivations> unpack_checked(const SharedBytes& packed, const ModelConfig& config,
                                            const std::string& what);

// Unpacks the unit's quantized activations on the pool, batch by batch. Refuses leases that do not
// ascend, batches that are not consecutive or beyond the run, batches of the wrong size, and
// positives that are malformed or outside the unit's shards.
Result<std::vector<QuantizedActivations>> check_unit(const TrainUnit& unit,
                                                     const ModelConfig& config, const ShardMap& map,
                                                     const RunPlan& plan, ThreadPool& pool);

// At least one lease, ascending by shard, no shard twice.
Result<void> check_lease_order(std::span<const LeaseRef> leases);

struct Kernels;

class ShardTrainer final : public LeasedShards {
 public:
  // `config` must be valid; `pool` outlives the trainer. Runs on default_kernels().
  ShardTrainer(const ModelConfig& config, ThreadPool& pool);
  ShardTrainer(const ModelConfig& config, ThreadPool& pool, const Kernels& kernels);
  ~ShardTrainer() override;

  // Without `compute_us`, also in EvalResult: the caller measures it, as this class reads no clock.
  struct UnitOutcome {
    UnitResult result;
    std::vector<ShardCommit> commits;  // of shards that reached a round's end in the unit
  };

  // Every lease must be loaded and stand at the unit's first batch.
  Result<UnitOutcome> train(const TrainUnit& unit);
  // Scores with the present shards.
  Result<EvalResult> evaluate(const EvalUnit& unit);

  [[nodiscard]] std::uint64_t memory_bytes() const override;
  // Estimated bytes of a held shard of this configuration.
  static std::uint64_t shard_bytes(const ModelConfig& config);

 private:
  struct Impl;

  std::unique_ptr<LeasedShard> make_shard(const LeaseGrant& grant) override;

  std::unique_ptr<Impl> impl_;
};

}  // namespace gleaner

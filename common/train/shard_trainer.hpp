// The output shards a volunteer holds and everything that is computed on them. Results depend on
// the shards' state and the messages alone: not on thread count, SIMD level, or which shards are
// here together. One thread at a time; loops run on the pool.
//
// Anything a message claims is checked (ranges, sizes, lease, order of batches) and refused with
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

// Checks what a work unit claims about its batches, before any of it is computed on. Stateless.

// Unpacks quantized activations of `config.hidden` units whose scales are at most kHiddenScaleMax.
// Refuses, with kProtocol, anything else; `what` names them in the error.
Result<QuantizedActivations> unpack_checked(const SharedBytes& packed, const ModelConfig& config,
                                            const std::string& what);

// The unit's quantized activations, batch by batch, unpacked on the pool. Refuses leases that are
// not ascending, batches that are not consecutive or beyond the run, batches of the wrong size, and
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
  // Computes on a chosen instruction set.
  ShardTrainer(const ModelConfig& config, ThreadPool& pool, const Kernels& kernels);
  ~ShardTrainer() override;

  // The caller measures `compute_us`, here and in EvalResult: a function of its input reads no
  // clock.
  struct UnitOutcome {
    UnitResult result;
    std::vector<ShardCommit> commits;  // of shards for which the unit reached a round's end
  };

  // Every lease must be loaded and stand at the unit's first batch.
  Result<UnitOutcome> train(const TrainUnit& unit);
  // Scores with the shards as they stand.
  Result<EvalResult> evaluate(const EvalUnit& unit);

  [[nodiscard]] std::uint64_t memory_bytes() const override;
  // Estimate of what loading a shard of this configuration takes.
  static std::uint64_t shard_bytes(const ModelConfig& config);

 private:
  struct Impl;

  std::unique_ptr<LeasedShard> make_shard(const LeaseGrant& grant) override;

  std::unique_ptr<Impl> impl_;
};

}  // namespace gleaner

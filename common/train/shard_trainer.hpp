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
#include "schema/messages.hpp"
#include "schema/quantized_batch.hpp"

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

class ShardTrainer {
 public:
  // `config` must be valid; `pool` outlives the trainer. Runs on default_kernels().
  ShardTrainer(const ModelConfig& config, ThreadPool& pool);
  // Computes on a chosen instruction set.
  ShardTrainer(const ModelConfig& config, ThreadPool& pool, const Kernels& kernels);
  ~ShardTrainer();
  ShardTrainer(const ShardTrainer&) = delete;
  ShardTrainer& operator=(const ShardTrainer&) = delete;

  // As LeasedShards says.
  Result<void> begin_load(const LeaseGrant& grant);
  Result<void> load_chunk(const ShardChunk& chunk);
  Result<ShardReady> finish_load(const LeaseRef& lease);
  std::vector<OfferedShard> step_back(RoundIndex checkpoint);
  Result<ShardReady> adopt(const LeaseGrant& grant);
  void drop(const LeaseRef& lease);
  Result<std::vector<HandOver>> hand_over(const LeaseRef& lease);

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

  // Bytes held for shards, for the memory limit and the status line.
  [[nodiscard]] std::uint64_t memory_bytes() const;
  // Estimate of what loading a shard of this configuration takes.
  static std::uint64_t shard_bytes(const ModelConfig& config);
  [[nodiscard]] std::vector<LeaseRef> leases() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gleaner

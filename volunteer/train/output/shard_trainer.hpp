// The output shards a volunteer holds and everything that is computed on them. Results depend on
// the shards' state and the messages alone: not on thread count, SIMD level, or which shards are
// here together. One thread at a time; loops run on the pool.
//
// Anything a message claims is checked (ranges, sizes, lease, order of batches) and refused with
// kProtocol or kStaleLease; a refused call changes nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/model/model_config.hpp"
#include "common/result.hpp"
#include "common/thread_pool.hpp"
#include "schema/messages.hpp"

namespace gleaner {

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

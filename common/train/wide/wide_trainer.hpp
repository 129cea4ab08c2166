// The output shards that a volunteer holds in a run without a hidden layer, and the computations on
// them: the counterpart of ShardTrainer. Results depend on a shard's state, the messages and the
// examples only.
//
// One thread at a time uses this class, which decides about held shards. The computation of a unit,
// a WideRound or score(), belongs to the unit's thread, and several such threads may run on
// different shards.
//
// Every claim of a message is checked (ranges, sizes, lease, order of batches) and refused with
// kProtocol or kStaleLease; a refused call changes nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/model/model_config.hpp"
#include "common/model/run_plan.hpp"
#include "common/model/shard_map.hpp"
#include "common/result.hpp"
#include "common/train/leased_shards.hpp"
#include "common/train/shard_trainer.hpp"
#include "common/train/wide/wide_batch.hpp"
#include "common/train/wide/wide_round.hpp"
#include "common/work/units.hpp"

namespace gleaner {

// Weights of a run's shards: the mean, rounded up, and the sum of all excesses over the mean.
struct WideWeights {
  std::uint64_t mean = 0;
  std::uint64_t beyond = 0;
};

// The best neurons of each example, by exact scores with the present shard.
EvalResult score(const EvalUnit& unit, const WideShard& shard, std::uint32_t features,
                 const WideBatch& examples);

class WideTrainer final : public LeasedShards {
 public:
  // `config` is valid and has no hidden layer.
  explicit WideTrainer(const ModelConfig& config);
  WideTrainer(const ModelConfig& config, const Kernels& kernels);

  // Checks that the unit belongs to this run and its shard is loaded. Returns the factor of its
  // learning rates relative to the plan's.
  [[nodiscard]] Result<float> check(const TrainUnit& unit) const;
  // Checks the unit likewise. Returns the number of examples to be scored.
  [[nodiscard]] Result<std::uint32_t> check(const EvalUnit& unit) const;

  // Requires check(unit). The shard must stand at the unit's first batch.
  Result<std::unique_ptr<WideRound>> begin(const TrainUnit& unit) const;
  // Notes that the shard has ended the unit's round with `update`, and makes the unit's result.
  Result<ShardTrainer::UnitOutcome> finish(const TrainUnit& unit, const WideRound& round,
                                           std::vector<SparseUpdate> update);

  [[nodiscard]] Result<std::shared_ptr<WideShard>> find_shard(const LeaseRef& lease) const;

  // The rate of a batch in a unit with this factor.
  [[nodiscard]] float rate(BatchIndex batch, float factor) const {
    return plan_.rates(batch).output * factor;
  }

  // shard_bytes() bounds the memory of a held shard. holder_bytes() bounds the further memory of
  // all held shards together, for those that are being loaded or trained.
  static std::uint64_t shard_bytes(const ModelConfig& config, const WideWeights& weights);
  static std::uint64_t holder_bytes(const ModelConfig& config, const WideWeights& weights);

 private:
  std::unique_ptr<LeasedShard> make_shard(const LeaseGrant& grant) override;

  const Kernels& kernels_;
};

}  // namespace gleaner

// The output shards that a volunteer holds of a run without a hidden layer, and everything that is
// computed on them; what ShardTrainer is for rows over hidden units. Results depend on a shard's
// state, the messages and the examples alone.
//
// One thread at a time decides here what is held. What a unit computes, a WideRound or score(), is
// for the thread that has the unit, beside others that have units of other shards.
//
// Anything a message claims is checked (ranges, sizes, lease, order of batches) and refused with
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

// Weights of a run's shards: the mean, rounded up, and what those with more have beyond it,
// together.
struct WideWeights {
  std::uint64_t mean = 0;
  std::uint64_t beyond = 0;
};

// The best neurons of each example, by exact scores with the shard as it stands.
EvalResult score(const EvalUnit& unit, const WideShard& shard, std::uint32_t features,
                 const WideBatch& examples);

class WideTrainer final : public LeasedShards {
 public:
  // `config` is valid and wide.
  explicit WideTrainer(const ModelConfig& config);
  WideTrainer(const ModelConfig& config, const Kernels& kernels);

  // Checks that the unit is one of this run and its shard is loaded. Returns the factor by which
  // its rates differ from the plan's.
  [[nodiscard]] Result<float> check(const TrainUnit& unit) const;
  // The number of examples that are to be scored.
  [[nodiscard]] Result<std::uint32_t> check(const EvalUnit& unit) const;

  // The shard has to stand at the unit's batch. Requires check(unit).
  Result<std::unique_ptr<WideRound>> begin(const TrainUnit& unit) const;
  // The shard has gone through a round, whose update this is: it stands behind it now.
  Result<ShardTrainer::UnitOutcome> finish(const TrainUnit& unit, const WideRound& round,
                                           std::vector<SparseUpdate> update);

  // The loaded shard.
  [[nodiscard]] Result<std::shared_ptr<WideShard>> find_shard(const LeaseRef& lease) const;

  // The rate of a batch, in a unit whose factor this is.
  [[nodiscard]] float rate(BatchIndex batch, float factor) const {
    return plan_.rates(batch).output * factor;
  }

  // A shard of a run takes no more than shard_bytes() while it is held, and all of them
  // holder_bytes() besides, for those that are loaded or trained.
  static std::uint64_t shard_bytes(const ModelConfig& config, const WideWeights& weights);
  static std::uint64_t holder_bytes(const ModelConfig& config, const WideWeights& weights);

 private:
  std::unique_ptr<LeasedShard> make_shard(const LeaseGrant& grant) override;

  const Kernels& kernels_;
};

}  // namespace gleaner

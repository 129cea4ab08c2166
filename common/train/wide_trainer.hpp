// The output shards that a volunteer holds of a run without a hidden layer, and everything that is
// computed on them; what ShardTrainer is for rows over hidden units. Results depend on the shards'
// state, the messages and the examples alone. One thread at a time; loops run on the pool.
//
// Anything a message claims is checked (ranges, sizes, lease, order of batches) and refused with
// kProtocol or kStaleLease; a refused call changes nothing.
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
#include "common/train/leased_shards.hpp"
#include "common/train/prepared_examples.hpp"
#include "common/train/shard_trainer.hpp"
#include "common/train/wide_layer.hpp"
#include "schema/messages.hpp"

namespace gleaner {

// Weights of a run's shards: the mean, rounded up, and what those with more have beyond it,
// together.
struct WideWeights {
  std::uint64_t mean = 0;
  std::uint64_t beyond = 0;
};

class WideTrainer final : public LeasedShards {
 public:
  // `config` is valid and wide; `pool` outlives the trainer.
  WideTrainer(const ModelConfig& config, ThreadPool& pool);
  WideTrainer(const ModelConfig& config, ThreadPool& pool, const Kernels& kernels);

  // That the unit is one of this run. To be asked before its examples are looked for.
  [[nodiscard]] Result<void> check(const TrainUnit& unit);
  // The number of examples that are to be scored.
  [[nodiscard]] Result<std::uint32_t> check(const EvalUnit& unit) const;

  // Every lease must be loaded and stand at the unit's first batch. Requires check(unit).
  // `examples` are those of each batch, without labels.
  Result<ShardTrainer::UnitOutcome> train(const TrainUnit& unit,
                                          std::span<const std::span<const ExampleView>> examples);
  // Scores with the shards as they stand. Requires check(unit).
  Result<EvalResult> evaluate(const EvalUnit& unit, std::span<const ExampleView> examples);

  [[nodiscard]] std::uint64_t memory_bytes() const override;
  // Any shards of a run take no more than shard_bytes() each, and holder_bytes() once, while they
  // are loaded or trained.
  static std::uint64_t shard_bytes(const ModelConfig& config, const WideWeights& weights);
  static std::uint64_t holder_bytes(const ModelConfig& config, const WideWeights& weights);

 private:
  std::unique_ptr<LeasedShard> make_shard(const LeaseGrant& grant) override;
  void train_batch(const UnitBatch& batch, std::span<const ExampleView> examples,
                   std::span<Holding* const> held, ShardTrainer::UnitOutcome& outcome);
  void hold_loaded();

  const Kernels& kernels_;
  ThreadPool& pool_;
  FeatureDropout dropout_;
  WideLayer layer_;
  std::uint64_t layer_version_ = ~std::uint64_t{0};  // of the shards, as the layer was last told
};

}  // namespace gleaner

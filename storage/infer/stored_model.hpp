// A trained model, read from a run's last complete checkpoint. For each example it scores every
// neuron and returns the best labels. It runs the code of the volunteers' evaluation, so the same
// store and examples give the same logits, to the bit.
//
// Output shards are read at first use and kept in memory up to a bound; other shards are read again
// for every batch, so that memory does not grow with the number of labels. Wide rows are all kept,
// since their index is. One thread at a time; loops run on the pool.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/data/packed_dataset.hpp"
#include "common/model/model_config.hpp"
#include "common/model/shard_map.hpp"
#include "common/result.hpp"
#include "common/thread_pool.hpp"
#include "common/train/input_layer.hpp"
#include "common/train/output_shard.hpp"
#include "common/train/wide/wide_index.hpp"
#include "common/train/wide/wide_shard.hpp"
#include "storage/infer/prediction.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// Whether training scaled every example to unit length, according to the settings.
Result<bool> trained_on_normalised_points(const RunIdentity& identity);

class StoredModel {
 public:
  static constexpr std::uint64_t kKeptBytesMax = std::uint64_t{1} << 30;

  // Reads the input layer; `pool` outlives the model. kNotFound when the run has no checkpoint yet:
  // an untrained model's answers are noise.
  static Result<std::unique_ptr<StoredModel>> open(std::unique_ptr<RunStore> run, ThreadPool& pool,
                                                   std::uint64_t kept_bytes_max = kKeptBytesMax);

  [[nodiscard]] const ModelConfig& config() const { return run_->identity().model; }

  [[nodiscard]] RoundIndex checkpoint() const { return run_->checkpoint(); }

  // Whether examples must be scaled, as in training: trained_on_normalised_points().
  [[nodiscard]] bool is_normalised() const { return is_normalised_; }

  // Number of labels that top() returns per example: `top_k`, or all labels if there are fewer.
  [[nodiscard]] std::uint32_t entries(std::uint32_t top_k) const;

  // examples x entries(top_k): the best labels of each example, by descending logit. Equal logits
  // are in the order of neurons in the layer, as in an evaluation. Features beyond the model's are
  // ignored. Values must be as in training (see is_normalised).
  Result<std::vector<ScoredLabel>> top(std::span<const ExampleView> examples, std::uint32_t top_k);

  // The two halves of top() with a hidden layer: the examples' quantized activations, and the best
  // labels for them.
  QuantizedActivations encode(std::span<const ExampleView> examples) {
    return input_->forward(examples, {});
  }

  Result<std::vector<ScoredLabel>> top(const QuantizedActivations& codes, std::uint32_t top_k);

  // The features with the largest parts in a label's logit for an example, largest first. All parts
  // and the label's bias add up to the logit. Empty with a hidden layer, where a feature has no
  // separate part. Requires an earlier call of top().
  [[nodiscard]] std::vector<Contribution> why(const ExampleView& example, std::uint32_t label,
                                              std::size_t count) const;

  // The store that the model was read from.
  [[nodiscard]] RunStore& run() { return *run_; }

  [[nodiscard]] ThreadPool& pool() { return pool_; }

  // Bytes of the output shards kept in memory.
  [[nodiscard]] std::uint64_t kept_bytes() const { return kept_bytes_; }

 private:
  StoredModel(std::unique_ptr<RunStore> run, ThreadPool& pool, std::uint64_t kept_bytes_max);

  Result<void> load_input();
  // The shard. When it is not in memory it is read, and `read` owns it unless it is kept from now
  // on.
  Result<const OutputShard*> output_shard(ShardId shard, std::unique_ptr<OutputShard>& read);
  Result<std::unique_ptr<OutputShard>> read_output_shard(ShardId shard);
  Result<void> load_wide();
  // Visits every stored row of a shard, in parts, after a check of its weights.
  Result<void> visit_rows(ShardId shard,
                          const std::function<Result<void>(const ShardRows&)>& visit);
  [[nodiscard]] std::vector<ScoredLabel> labels_of(const std::vector<ScoredNeuron>& best) const;

  std::unique_ptr<RunStore> run_;
  ThreadPool& pool_;
  const Kernels& kernels_;
  const std::uint64_t kept_bytes_max_;
  const ModelConfig scoring_config_;  // the model's, without tables: every neuron is scored
  const ShardMap map_;                // of scoring_config_
  const ShardContext context_;
  bool is_normalised_ = true;
  std::optional<InputLayer> input_;                 // null without a hidden layer
  std::vector<std::unique_ptr<OutputShard>> kept_;  // by shard; null where not kept
  std::uint64_t kept_bytes_ = 0;
  // Without a hidden layer: all shards, from the first question on.
  std::vector<std::unique_ptr<WideShard>> wide_shards_;
  std::unique_ptr<WideIndex> wide_;
};

}  // namespace gleaner

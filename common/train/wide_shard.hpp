// An output shard without a hidden layer: its neurons' wide rows, and the training step on some of
// them. A neuron's wide row is a sparse row of weights straight over features (the wide part of
// Cheng et al. 2016, arXiv 1606.07792), cut into stored rows of kWideWeights.
//
//   score(x) = bias + sum over the features that x and the row share of x_j * weight_j
//
// A step is neuron by neuron, and within a neuron example by example: plain SGD on the logistic
// loss, without any state. A neuron reads no other, so neurons may be divided among threads.
//
// A label's row begins as the sum of its examples. Training on one of them leaves it out: the
// example's own part of the score is subtracted, for the row would otherwise know it by heart. The
// state of a neuron's first stored row says how much the square of a feature counts in that part
// (storage/keep/wide_start.hpp). A label with a single example does not learn from that example.
//
// One thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/data/packed_dataset.hpp"
#include "common/model/model_config.hpp"
#include "common/model/shard_map.hpp"
#include "common/model/shard_rows.hpp"
#include "common/result.hpp"
#include "common/train/aligned_vector.hpp"
#include "common/train/kernels.hpp"
#include "common/train/leased_shards.hpp"
#include "common/train/output_rows.hpp"
#include "schema/messages.hpp"

namespace gleaner {

// An example trains a neuron: by its place in the batch.
struct WidePair {
  std::uint32_t neuron = 0;  // in the shard
  std::uint32_t example : 31 = 0;
  std::uint32_t is_true : 1 = 0;
  friend bool operator==(const WidePair&, const WidePair&) = default;
};

// Working memory of one thread.
struct alignas(kCacheLine) WideScratch {
  // Where a neuron and an example meet: the weight's place, and the feature's value.
  struct Match {
    std::size_t at = 0;
    float value = 0;
  };

  std::vector<WidePair> pairs;  // of the shard in hand
  std::vector<Match> matches;
  // Features: their place among those of the neuron in hand, from 1 on; 0 between neurons.
  std::vector<std::uint32_t> places;
};

class WideShard final : public LeasedShard {
 public:
  // Configuration and map outlive the shard, which has no rows before load(). `label_counts`: one a
  // neuron; without them the shard cannot be trained.
  WideShard(const ModelConfig& config, const ShardMap& map, const Kernels& kernels, ShardId shard,
            std::span<const std::uint32_t> label_counts = {});

  [[nodiscard]] ShardId id() const { return shard_; }

  [[nodiscard]] NeuronRange neurons() const { return neurons_; }

  Result<void> load(const ShardRows& rows) override;
  Result<void> load_touched(const ShardRows& rows) override;

  // Every row of a wide shard is stored.
  void load_initial(const ChunkLedger& /*ledger*/) override {}

  void finish_loading() override;
  bool step_back(std::uint32_t commits) override;
  [[nodiscard]] std::vector<ShardRows> touched_rows() const override;
  [[nodiscard]] std::uint64_t memory_bytes() const override;

  [[nodiscard]] ShardDigest digest() const override { return rows_.digest(shard_); }

  // A neuron's features, ascending, and its weights, parallel to them.
  [[nodiscard]] std::span<const std::uint32_t> features(std::uint32_t neuron) const {
    return {features_.data() + begins_[neuron], sizes_[neuron]};
  }

  [[nodiscard]] const float* weights(std::uint32_t neuron) const {
    return rows_.weights(0) + begins_[neuron];
  }

  // The weights as of the last freshen(): what the index makes its short lists of, whenever it
  // does.
  [[nodiscard]] const float* listed_weights(std::uint32_t neuron) const {
    return listed_.data() + begins_[neuron];
  }

  // The short lists are to follow the weights as they stand.
  void freshen();

  [[nodiscard]] float bias(std::uint32_t neuron) const {
    return rows_.biases()[begins_[neuron] / kWideWeights];
  }

  // Trains the pairs, ascending by neuron, then example, on the batch's examples, which have unit
  // length. Adds to `outcome`. `scratch` is the thread's, for any shard.
  void train(std::span<const WidePair> pairs, std::span<const ExampleView> examples, float rate,
             WideScratch& scratch, ShardOutcome& outcome);

  // Ends a round: rounds touched rows to what the update says, freshens the lists, and returns the
  // update in parts of ascending rows, at least one.
  std::vector<SparseUpdate> commit();

 private:
  using Matches = std::vector<WideScratch::Match>;

  // Finds where the neuron and the example meet; one is looked up in the other, or in `places`
  // if the neuron's features have been spread there.
  void match(std::uint32_t neuron, const ExampleView& example, Matches& matches) const;
  void match_spread(std::uint32_t neuron, const ExampleView& example, WideScratch& scratch) const;
  // Trains a neuron's pairs.
  void train_neuron(std::span<const WidePair> pairs, std::span<const ExampleView> examples,
                    float rate, WideScratch& scratch, ShardOutcome& outcome);
  void update(std::uint32_t neuron, float step, const Matches& matches);

  const ModelConfig& config_;
  const ShardMap& map_;
  const Kernels& kernels_;
  ShardId shard_;
  NeuronRange neurons_;
  OutputRows rows_;            // stored rows
  std::vector<float> listed_;  // weights as the lists know them
  std::vector<std::uint32_t>
      features_;                       // of each weight; the number of features where there is none
  std::vector<std::uint32_t> owners_;  // stored rows: their neurons
  std::vector<std::uint8_t> is_loaded_;  // stored rows
  std::vector<std::uint8_t> is_lone_;    // neurons: the label has one example
  std::vector<std::size_t> begins_;      // neurons: their first weight
  std::vector<std::uint32_t> sizes_;     // neurons: weights that have a feature
};

}  // namespace gleaner

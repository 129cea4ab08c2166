// The wide rows that a run without a hidden layer begins with. A label's row is the sum of its
// training examples, each scaled to unit length, times the rarity of each feature, log((points + 1)
// / (examples that have it + 0.5)), over the features that it keeps, scaled to the length
// `wide_scale`: training begins with the nearest label centroid. A label keeps its largest
// features, and more of them the more examples it has: rare labels are told apart by a few words,
// and frequent ones need thousands. The state of its first stored row is the mean factor by which
// the sum was scaled: what an example itself has put into the row.
//
// One shard is in hand at a time. Memory is four bytes per label entry of the training data, and
// what a shard's rows take. A function of data and configuration; one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/dataset/centroids/label_examples.hpp"
#include "common/dataset/packed_dataset.hpp"
#include "common/model/model_config.hpp"
#include "common/model/shard_map.hpp"
#include "common/result.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// Features that a label with this number of examples keeps, at most.
std::uint64_t wide_features_kept(const ModelConfig& config, std::uint64_t examples);

class WideStart {
 public:
  // `train` outlives this. Errors as LabelExamples::open.
  static Result<std::unique_ptr<WideStart>> open(const ModelConfig& config,
                                                 const PackedDataset& train);

  // ModelConfig::wide_rows: the rows of the shard that has most.
  std::uint32_t rows_max();

  // The rows that a new run begins with. This outlives it.
  [[nodiscard]] InitialRows rows();

 private:
  WideStart(const ModelConfig& config, const PackedDataset& train, LabelExamples examples);

  // The rows of a shard, all of them.
  ShardRows make_rows(ShardId shard);
  // Fills weights_ with those that the label keeps.
  void sum_up(std::uint32_t label);
  void append_rows(ShardRows& rows, std::uint32_t neuron, std::uint32_t label);

  // A feature of a centroid, and its sum times rarity.
  struct Weight {
    std::uint32_t feature;
    double sum;
  };

  ModelConfig config_;
  ShardMap map_;
  const PackedDataset& train_;
  LabelExamples examples_;
  LabelCentroid centroid_;
  std::vector<double> rarities_;  // by feature
  std::vector<Weight> weights_;   // of the label in hand, ascending by feature
  double rarity_ = 0;             // of its features, the mean by the squares of the sums
  ShardId made_{~0u};             // the shard whose rows are in made_rows_
  ShardRows made_rows_;
};

}  // namespace gleaner

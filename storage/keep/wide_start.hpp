// The wide rows that a run without a hidden layer begins with. A label's row is the sum of its
// training examples, each scaled to unit length, times the rarity of each feature, log((points + 1)
// / (examples that have it + 0.5)), over the features that it keeps, scaled to the length
// `wide_scale`: training begins with the nearest label centroid. A label keeps its largest
// features, and more of them the more examples it has: rare labels are told apart by a few words,
// and frequent ones need thousands. Its bias is prior_log_odds() + 1, and its `own` the mean factor
// by which the sum was scaled.
//
// A label of the model file that a run begins with keeps the file's row, and what the training data
// would have it keep beside that begins at 0: at first the run answers as the file does.
//
// Memory is four bytes per label entry of the training data. A function of data, configuration and
// model file; one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/data/nearest_centroids.hpp"
#include "common/data/packed_dataset.hpp"
#include "common/model/model_config.hpp"
#include "common/result.hpp"
#include "storage/keep/initial_model.hpp"
#include "storage/keep/initial_wide_rows.hpp"

namespace gleaner {

// Features that a label with this number of examples keeps, at most.
std::uint64_t wide_features_kept(const ModelConfig& config, std::uint64_t examples);

class WideStart {
 public:
  // `train`, and `initial` if there is one, outlive this. Errors as LabelExamples::open.
  static Result<std::unique_ptr<WideStart>> open(const ModelConfig& config,
                                                 const PackedDataset& train,
                                                 const InitialModel* initial = nullptr);

  // As wide_sizes() and wide_initial_rows(). This outlives what rows() returns.
  Result<WideSizes> sizes();
  [[nodiscard]] InitialRows rows();

 private:
  WideStart(const ModelConfig& config, const PackedDataset& train, const InitialModel* initial,
            LabelExamples examples);

  Result<void> make_row(std::uint32_t label, WideRow& row);
  // Fills weights_ with those that the label keeps.
  void sum_up(std::uint32_t label);
  // Adds features of weights_ that the row does not have, at 0.
  void add_at_zero(WideRow& row);

  // A feature of a centroid, and its sum times rarity.
  struct Weight {
    std::uint32_t feature;
    double sum;
  };

  ModelConfig config_;
  const PackedDataset& train_;
  const InitialModel* initial_;  // null: there is none
  LabelExamples examples_;
  LabelCentroid centroid_;
  std::vector<double> rarities_;  // by feature
  std::vector<Weight> weights_;   // of the label in hand, ascending by feature
  double rarity_ = 0;             // of its features, the mean by the squares of the sums
};

}  // namespace gleaner

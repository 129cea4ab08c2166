// The start rows of a run without a hidden layer. A label's row is the sum of its training
// examples, each scaled to unit length. Each feature of the sum is multiplied by its rarity,
// log((examples + 1) / (examples with the feature + 0.5)). The label keeps its largest features,
// and the row is scaled to the length `wide_scale`. Training thus begins with the nearest label
// centroid. A label keeps more features the more examples it has: a few words tell rare labels
// apart, while frequent labels need thousands. Its bias is prior_log_odds() + 1; WideRow::own is
// the scaling factor times the features' mean rarity.
//
// With an initial model file, a label of the file keeps the file's row. Features that the training
// data would add begin at 0, so at first the run answers as the file does.
//
// Memory is four bytes per label entry of the training data. The result is a function of data,
// configuration and model file. One thread at a time.
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

// The most features that a label with this number of examples keeps.
std::uint64_t wide_features_kept(const ModelConfig& config, std::uint64_t examples);

class WideStart {
 public:
  // `train`, and `initial` if given, outlive this object. Errors as in LabelExamples::open.
  static Result<std::unique_ptr<WideStart>> open(const ModelConfig& config,
                                                 const PackedDataset& train,
                                                 const InitialModel* initial = nullptr);

  // As wide_sizes() and wide_initial_rows(). This object must outlive the result of rows().
  Result<WideSizes> sizes();
  [[nodiscard]] InitialRows rows();

 private:
  WideStart(const ModelConfig& config, const PackedDataset& train, const InitialModel* initial,
            LabelExamples examples);

  Result<void> make_row(std::uint32_t label, WideRow& row);
  // Sets weights_ to the weights that the label keeps.
  void sum_up(std::uint32_t label);
  // Adds those features of weights_ that the row lacks, with weight 0.
  void add_at_zero(WideRow& row);

  // A feature of a centroid, and its sum times rarity.
  struct Weight {
    std::uint32_t feature;
    double sum;
  };

  ModelConfig config_;
  const PackedDataset& train_;
  const InitialModel* initial_;  // may be null
  LabelExamples examples_;
  LabelCentroid centroid_;
  std::vector<double> rarities_;  // by feature
  std::vector<Weight> weights_;   // of the present label, ascending by feature
  double rarity_ = 0;  // of its features: mean rarity, weighted by the squares of the sums
};

}  // namespace gleaner

// The start rows of a run without a hidden layer. A label's row is the sum of its training
// examples, each scaled to unit length. Each feature of the sum is multiplied by its rarity,
// log((examples + 1) / (examples with the feature + 0.5)). The label keeps its largest features,
// and the row is scaled to the length `wide_scale`. Training thus begins with the nearest label
// centroid. A label keeps more features the more examples it has: a few words tell rare labels
// apart, while frequent labels need thousands. Its bias is prior_log_odds() + 1; WideRow::own is
// the scaling factor times the features' mean rarity.
//
// A label's texts together weigh `wide_text_weight` examples in the sum, and count as one example
// for the number of features. So a label without examples has a row too, with WideRow::own 0.
//
// With an initial model file, a label of the file keeps the file's row. Features that the training
// data would add begin at 0, so at first the run answers as the file does. A row of the file that
// was made without examples gives way to a start row as soon as there are examples.
//
// Memory is four bytes per label entry of the training data. The result is a function of data,
// configuration and model file. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/data/nearest_centroids.hpp"
#include "common/data/open_or_pack.hpp"
#include "common/data/packed_dataset.hpp"
#include "common/model/model_config.hpp"
#include "common/result.hpp"
#include "storage/keep/initial_model.hpp"
#include "storage/keep/initial_wide_rows.hpp"

namespace gleaner {

// The most features that a label with this number of examples keeps.
std::uint64_t wide_features_kept(const ModelConfig& config, std::uint64_t examples);

// Opens the label texts at `path` or, if it is empty, kLabelTextsFile beside the training file
// `train_path`. Null without such a file. Refuses ids beyond the ids of `train`.
Result<std::unique_ptr<PackedDataset>> open_label_texts(const std::string& path,
                                                        const std::string& train_path,
                                                        const PackedDataset& train,
                                                        PackOptions options);

class WideStart {
 public:
  // `train`, and the others if given, outlive this object. `texts` has label texts as examples.
  // Errors as in LabelExamples::open.
  static Result<std::unique_ptr<WideStart>> open(const ModelConfig& config,
                                                 const PackedDataset& train,
                                                 const InitialModel* initial = nullptr,
                                                 const PackedDataset* texts = nullptr);

  // Start rows of labels that a model gets without training: of texts alone. `occurrences`:
  // training examples of the model with each feature. `texts` outlives this object.
  static Result<std::unique_ptr<WideStart>> of_texts(const ModelConfig& config,
                                                     const PackedDataset& texts,
                                                     std::vector<double> occurrences);

  // Sets the row of a label, which is empty before.
  Result<void> make_row(std::uint32_t label, WideRow& row);
  // As wide_sizes() and wide_initial_rows(). This object must outlive the result of rows().
  Result<WideSizes> sizes();
  [[nodiscard]] InitialRows rows();

 private:
  explicit WideStart(const ModelConfig& config) : config_(config), centroid_(config.features) {}

  Result<void> take_texts(const PackedDataset* texts);
  void take_rarities(std::vector<double> occurrences, std::uint64_t points);
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
  const PackedDataset* train_ = nullptr;  // each may be null
  const InitialModel* initial_ = nullptr;
  const PackedDataset* texts_ = nullptr;
  LabelExamples examples_;
  LabelExamples label_texts_;
  LabelCentroid centroid_;
  std::vector<double> rarities_;       // by feature
  std::vector<Weight> weights_;        // of the present label, ascending by feature
  std::uint32_t examples_summed_ = 0;  // of the present label
  double rarity_ = 0;  // of its features: mean rarity, weighted by the squares of the sums
};

}  // namespace gleaner

// A model that a run begins with: a safetensors file as `gleaner export` writes it, with a hidden
// layer or with wide rows. Labels and features that the file does not have begin as in any run. The
// file is mapped; any one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/data/nearest_centroids.hpp"
#include "common/data/packed_dataset.hpp"
#include "common/model/model_config.hpp"
#include "common/model/shard_map.hpp"
#include "common/result.hpp"
#include "common/train/wide/wide_trainer.hpp"
#include "storage/keep/model_file.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// Wide rows on their way into a store: each label's row is cut into stored rows of kWideWeights,
// shard by shard. Whoever knows the labels' rows says them one at a time. One thread.

// A label's row: its features, ascending, and their weights.
struct WideRow {
  std::vector<std::uint32_t> features;
  std::vector<float> weights;  // parallel to features
  float bias = 0;
  // An example's own part of a weight, divided by the square of its feature.
  float own = 0;

  void clear();
  void add(std::uint32_t feature, float weight);
};

// Fills in the row of a label, which it finds empty. Errors name file and label.
using WideRowOf = std::function<Result<void>(std::uint32_t label, WideRow& row)>;

struct WideSizes {
  // ModelConfig::wide_rows: stored rows of the shard that has most, kWideRowsMax + 1 at most.
  std::uint32_t rows = 0;
  WideWeights weights;
};

Result<WideSizes> wide_sizes(const ModelConfig& config, const WideRowOf& row_of);

// The rows that a new run begins with, made a shard at a time.
InitialRows wide_initial_rows(const ModelConfig& config, WideRowOf row_of);

class InitialModel {
 public:
  // Errors name the file and the tensor. kInvalidData for a file that is no such model.
  static Result<std::unique_ptr<InitialModel>> open(const std::string& path);

  // With wide rows: up to the last that a label has.
  [[nodiscard]] std::uint32_t features() const { return features_; }

  // 0: it has wide rows.
  [[nodiscard]] std::uint32_t hidden() const { return hidden_; }

  // As the file's metadata have it; rectified where they do not say.
  [[nodiscard]] HiddenUnits hidden_units() const;

  [[nodiscard]] std::uint32_t labels() const { return labels_; }

  [[nodiscard]] std::uint64_t parameters() const;

  [[nodiscard]] const std::map<std::string, std::string>& metadata() const {
    return file_->metadata();
  }

  // Training points of each label, as the file has them; empty when it does not.
  [[nodiscard]] const std::vector<std::uint32_t>& label_counts() const { return label_counts_; }

  // A fingerprint of shapes and numbers, whatever else the file says; never 0.
  [[nodiscard]] std::uint64_t fingerprint() const { return fingerprint_; }

  // Refuses a configuration that has another number or kind of hidden units, or fewer features or
  // labels.
  [[nodiscard]] Result<void> check_fits(const ModelConfig& model) const;

  // The rows as the run's shards have them. Requires check_fits(model), and for wide rows that the
  // run has no more labels than the file; this outlives it.
  [[nodiscard]] InitialRows rows(const ModelConfig& model) const;

  // Fills in the wide row of a label of the file. Requires hidden() == 0.
  Result<void> read_wide_row(std::uint32_t label, WideRow& row) const;

 private:
  class RowMaker;
  using Tensor = TensorFile::Tensor;
  explicit InitialModel(std::unique_ptr<TensorFile> file);
  Result<void> read();
  Result<void> read_layers();
  Result<void> read_wide();
  Result<void> check_offsets();
  Result<void> read_label_counts();
  void take_fingerprint();

  std::unique_ptr<TensorFile> file_;
  std::uint32_t features_ = 0, hidden_ = 0, labels_ = 0;
  std::uint64_t fingerprint_ = 0;
  std::vector<std::uint32_t> label_counts_;
  Tensor input_weight_;   // features x hidden
  Tensor input_bias_;     // hidden
  Tensor output_weight_;  // labels x hidden
  Tensor output_bias_;    // labels
  Tensor wide_offsets_;   // labels + 1: label l has the entries from [l] up to [l + 1]
  Tensor wide_features_;  // entries, ascending within a label
  Tensor wide_weights_;   // entries
  Tensor wide_own_;       // labels
};

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

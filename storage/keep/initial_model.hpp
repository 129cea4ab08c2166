// A model that a run begins with: a safetensors file as `gleaner export` writes it, with a hidden
// layer or with wide rows. Labels and features that the file lacks begin as in any run; those that
// the data set lacks are left out, if they have names. The file is mapped; any one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/data/name_table.hpp"
#include "common/model/model_config.hpp"
#include "common/result.hpp"
#include "storage/keep/initial_wide_rows.hpp"
#include "storage/keep/tensor_file.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// Pairs the labels, or features, of a model file with the same things in a data set: by name if
// both have names, else by number. Immutable; any thread.
class NameMatch {
 public:
  static constexpr std::uint32_t kNone = ~0U;

  // By number.
  NameMatch(std::uint32_t in_file, std::uint32_t in_data);
  // By name. Of equal names in one table, the first counts.
  NameMatch(const NameTable& in_file, const NameTable& in_data);

  [[nodiscard]] bool is_by_name() const { return is_by_name_; }

  // Whether equal numbers are the same thing.
  [[nodiscard]] bool is_identity() const;

  // The number in the data set, or kNone.
  [[nodiscard]] std::uint32_t to_data(std::uint32_t in_file) const { return to_data_[in_file]; }

  // The number in the file, or kNone.
  [[nodiscard]] std::uint32_t to_file(std::uint32_t in_data) const {
    return in_data < to_file_.size() ? to_file_[in_data] : kNone;
  }

  // Numbers that file and data set share.
  [[nodiscard]] std::uint32_t shared() const { return shared_; }

  [[nodiscard]] const std::vector<std::uint32_t>& all_to_data() const { return to_data_; }

 private:
  void pair(std::uint32_t in_file, std::uint32_t in_data);

  bool is_by_name_;
  std::uint32_t shared_ = 0;
  std::vector<std::uint32_t> to_data_;  // by number in the file
  std::vector<std::uint32_t> to_file_;  // by number in the data set
};

class InitialModel {
 public:
  // Errors name the file and the tensor. kInvalidData for a file that is not such a model.
  static Result<std::unique_ptr<InitialModel>> open(const std::string& path);

  // Number of features. With wide rows: up to the last feature that a label has.
  [[nodiscard]] std::uint32_t features() const { return features_; }

  // 0 for wide rows.
  [[nodiscard]] std::uint32_t hidden() const { return hidden_; }

  // From the file's metadata; ReLU where they do not say.
  [[nodiscard]] HiddenUnits hidden_units() const;

  [[nodiscard]] std::uint32_t labels() const { return labels_; }

  [[nodiscard]] std::uint64_t parameters() const;

  [[nodiscard]] const std::map<std::string, std::string>& metadata() const {
    return file_->metadata();
  }

  // Training examples of each label; empty when the file does not have them.
  [[nodiscard]] const std::vector<std::uint32_t>& label_counts() const { return label_counts_; }

  // Finds the file's labels and features in a data set: by name where the file has names and the
  // data set's table is not empty, else by number. Before this call, by number in a data set of the
  // file's own sizes. Errors name the file: broken names.
  Result<void> match(const NameTable& labels, std::uint32_t label_count, const NameTable& features,
                     std::uint32_t feature_count);

  [[nodiscard]] const NameMatch& matched_labels() const { return label_match_; }

  [[nodiscard]] const NameMatch& matched_features() const { return feature_match_; }

  // False for a label that is retired in the file.
  [[nodiscard]] bool has_label(std::uint32_t in_data) const;

  // A fingerprint of shapes and numbers, never 0; and of the match, if it changes numbers.
  [[nodiscard]] std::uint64_t fingerprint() const { return fingerprint_; }

  // Refuses a configuration with another number or kind of hidden units, and one with fewer
  // features or labels if they are matched by number.
  [[nodiscard]] Result<void> check_fits(const ModelConfig& model) const;

  // The initial rows of the run's shards. Requires check_fits(model) and, for wide rows, that the
  // run has no more labels than the file. This object must outlive the result.
  [[nodiscard]] InitialRows rows(const ModelConfig& model) const;

  // Reads a label's wide row from the file into `row`, with the data set's numbers. Requires
  // hidden() == 0 and has_label(label).
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
  NameMatch label_match_{0, 0};
  NameMatch feature_match_{0, 0};
  Tensor input_weight_;   // features x hidden
  Tensor input_bias_;     // hidden
  Tensor output_weight_;  // labels x hidden
  Tensor output_bias_;    // labels
  Tensor wide_offsets_;   // labels + 1: label l has entries [l] to [l + 1] - 1
  Tensor wide_features_;  // entries, ascending within a label
  Tensor wide_weights_;   // entries
  Tensor wide_own_;       // labels
};

}  // namespace gleaner

// The files of a data set that make answers readable: names of labels and features, the words that
// turn a text into an example, and test examples with their names. Each part may be missing.
// Immutable after opening.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/data/packed_dataset.hpp"
#include "common/data/word_model.hpp"
#include "common/result.hpp"
#include "storage/infer/prediction.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

class PredictData {
 public:
  // Without names, words and examples.
  PredictData() = default;
  // Opens the names and words for the run's model from `path`: a folder with labels.txt,
  // features.txt and words.json, or a model file that carries them. kInvalidData when a file is
  // damaged or is not the file that training used.
  static Result<PredictData> open_names(const std::string& path, const RunIdentity& run);
  // As open_names() for a folder, which may also have test.txt with test.points.txt.
  static Result<PredictData> open(const std::string& folder, const RunIdentity& run);

  [[nodiscard]] const PredictNames& names() const { return names_; }

  void set_labels(NameTable labels, NameTable titles) {
    names_.labels = std::move(labels);
    names_.titles = std::move(titles);
  }

  // Null: texts cannot be read.
  [[nodiscard]] const WordModel* words() const { return words_ ? &*words_ : nullptr; }

  // Null: there are no examples.
  [[nodiscard]] const PackedDataset* examples() const { return examples_.get(); }

  // The test example with this name: the whole name, or the name up to its first ": ".
  [[nodiscard]] std::optional<std::uint64_t> example_named(std::string_view name) const;

 private:
  static Result<PredictData> open_carried(const std::string& path, const RunIdentity& run);

  PredictNames names_;
  std::optional<WordModel> words_;
  std::unique_ptr<PackedDataset> examples_;
  std::vector<std::uint32_t> by_name_;  // examples in the order of their names
};

}  // namespace gleaner

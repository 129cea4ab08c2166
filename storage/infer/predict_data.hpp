// The files of a data set that make a model's answers readable: the names of labels and features,
// the words by which a text becomes an example, and the test examples with their names.
// Each part may be missing. Immutable once made.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/data/packed_dataset.hpp"
#include "common/data/word_model.hpp"
#include "common/result.hpp"
#include "storage/infer/prediction.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

class PredictData {
 public:
  // Nothing but numbers.
  PredictData() = default;
  // Opens the names and words that `path` has for the model of a run: a folder with labels.txt,
  // features.txt and words.json, or a model file that carries them. kInvalidData when one is
  // damaged, or not the one with which the run learned.
  static Result<PredictData> open_names(const std::string& path, const RunIdentity& run);
  // Opens what `folder` has for the model of a run: labels.txt, features.txt, words.json, and
  // test.txt with test.points.txt. Otherwise as open_names().
  static Result<PredictData> open(const std::string& folder, const RunIdentity& run);

  [[nodiscard]] const PredictNames& names() const { return names_; }

  // Null: texts cannot be read.
  [[nodiscard]] const WordModel* words() const { return words_ ? &*words_ : nullptr; }

  // Null: there are no examples.
  [[nodiscard]] const PackedDataset* examples() const { return examples_.get(); }

  // The test example of this name: the whole name, or what stands before its first ": ".
  [[nodiscard]] std::optional<std::uint64_t> example_named(std::string_view name) const;

 private:
  static Result<PredictData> open_carried(const std::string& path, const RunIdentity& run);

  PredictNames names_;
  std::optional<WordModel> words_;
  std::unique_ptr<PackedDataset> examples_;
  std::vector<std::uint32_t> by_name_;  // examples in the order of their names
};

}  // namespace gleaner

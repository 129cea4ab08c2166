// One example with what the model says of it, and how programs read it. Pure, apart from the names
// that it borrows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/data/name_table.hpp"
#include "common/data/packed_dataset.hpp"
#include "common/data/point_parser.hpp"
#include "common/data/word_model.hpp"
#include "common/result.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// A label and what the network says of it.
struct ScoredLabel {
  std::uint32_t label = 0;
  float logit = 0;
  friend bool operator==(const ScoredLabel&, const ScoredLabel&) = default;
};

// The part that a feature of an example has in a label's logit.
struct Contribution {
  std::uint32_t feature = 0;
  float value = 0;
  friend bool operator==(const Contribution&, const Contribution&) = default;
};

// The logistic function of each logit, to the same bits on every machine; of one that is not
// finite, any number.
std::vector<float> probabilities_of(std::span<const ScoredLabel> scored);

// Readable names, as far as there are any.
struct PredictNames {
  NameTable labels;
  NameTable features;
  NameTable points;
};

struct PredictedLabel {
  std::uint32_t label = 0;
  float logit = 0;
  float probability = 0;
  bool is_true = false;             // it is one of the point's own labels
  std::vector<Contribution> why{};  // what decided, most first; empty where it is not known
};

// Features that are named for each predicted label.
inline constexpr std::size_t kContributionsShown = 5;

// One point with what the model says to it.
struct Prediction {
  std::uint64_t index = 0;                // of the point in its file, from 0
  Point point;                            // values as they stand in the file, or
  bool is_scaled = false;                 // as training saw them
  std::vector<PredictedLabel> predicted;  // best first
  std::string name;                       // of its own; empty: as the names have it
};

// Labels of the point that are not among the predicted, ascending.
std::vector<std::uint32_t> missed_labels(const Prediction& prediction);

// The point's features of the largest magnitude, as positions in its lists, strongest first; of
// equals the smaller id first.
std::vector<std::size_t> strongest_features(const Point& point, std::size_t count);

// The labels that the model proposes for an example whose true labels, ascending, are `labels`.
// `best` as StoredModel::top gives it; entries that the tables could not fill are left out.
std::vector<PredictedLabel> predicted_labels(std::span<const ScoredLabel> best,
                                             std::span<const std::uint32_t> labels);

// The shortest decimal that reads back as the same float: 8.49 rather than 8.489999771118164.
double shortest_decimal(float value);

// One JSON object and a line end; tools/JSON.md lists its fields.
std::string prediction_json(const Prediction& prediction, const PredictNames& names);

// The files of a data set that make a model's answers readable: the names of labels and features,
// the words by which a text becomes an example, and the test examples with their names.
// Each part may be missing. Immutable once made.

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

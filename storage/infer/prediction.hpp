// One example with the model's predictions, and its JSON form. Pure, apart from the borrowed names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/data/name_table.hpp"
#include "common/data/point_parser.hpp"
#include "common/model/calibration.hpp"
#include "common/model/model_config.hpp"

namespace gleaner {

// A label and its logit.
struct ScoredLabel {
  std::uint32_t label = 0;
  float logit = 0;
  friend bool operator==(const ScoredLabel&, const ScoredLabel&) = default;
};

// The part of a label's logit that a feature of an example contributes.
struct Contribution {
  std::uint32_t feature = 0;
  float value = 0;
  friend bool operator==(const Contribution&, const Contribution&) = default;
};

// The probability that each label is true, by the model's loss for the calibrated logit, to the
// same bits on every machine. Unspecified for a logit that is not finite.
std::vector<float> probabilities_of(const ModelConfig& model, const Calibration& calibration,
                                    std::span<const ScoredLabel> scored);

// Readable names; each table may be empty.
struct PredictNames {
  NameTable labels;
  NameTable features;
  NameTable points;
  NameTable titles{};  // of labels, as kLabelTitlesFile has them

  // Empty if the label has none.
  [[nodiscard]] std::string_view title(std::uint32_t label) const;
  [[nodiscard]] std::string_view notation(std::uint32_t label) const;
  // The title with the name in brackets, the name or "label 17".
  [[nodiscard]] std::string label(std::uint32_t label) const;
};

struct PredictedLabel {
  std::uint32_t label = 0;
  float logit = 0;
  float probability = 0;
  bool is_true = false;             // whether it is a true label of the example
  std::vector<Contribution> why{};  // largest contributions first; empty if unknown
};

// Features named for each predicted label.
inline constexpr std::size_t kContributionsShown = 5;

// An example and its predictions.
struct Prediction {
  std::uint64_t index = 0;                // of the example in its file, from 0
  Point point;                            // values as in the file unless is_scaled
  bool is_scaled = false;                 // the values are as training saw them
  std::vector<PredictedLabel> predicted;  // best first
  std::string name;                       // replaces the name in PredictNames unless empty
};

// The example's true labels that are not among the predicted, ascending.
std::vector<std::uint32_t> missed_labels(const Prediction& prediction);

// The example's features of largest magnitude, as positions in its lists, strongest first; equal
// magnitudes in the order of ids.
std::vector<std::size_t> strongest_features(const Point& point, std::size_t count);

// The labels that the model predicts for an example. `labels` are its true labels, ascending.
// `best` comes from StoredModel::top; entries that the tables left empty are skipped.
std::vector<PredictedLabel> predicted_labels(const ModelConfig& model,
                                             const Calibration& calibration,
                                             std::span<const ScoredLabel> best,
                                             std::span<const std::uint32_t> labels);

// The shortest decimal that reads back as the same float: 8.49, not 8.489999771118164.
double shortest_decimal(float value);

// One JSON object and a line end; tools/JSON.md lists its fields. Says which labels are true only
// of an example with labels.
enum class FeaturesShown : std::uint8_t { kNone, kStrongest };
std::string prediction_json(const Prediction& prediction, const PredictNames& names,
                            FeaturesShown features);

}  // namespace gleaner

// One example with what the model says of it, and how programs read it. Pure, apart from the names
// that it borrows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/data/name_table.hpp"
#include "common/data/point_parser.hpp"
#include "common/model/model_config.hpp"

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

// The probability that each label is true, by the model's loss, to the same bits on every machine.
// A logit that is not finite gives any number.
std::vector<float> probabilities_of(const ModelConfig& model, std::span<const ScoredLabel> scored);

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
std::vector<PredictedLabel> predicted_labels(const ModelConfig& model,
                                             std::span<const ScoredLabel> best,
                                             std::span<const std::uint32_t> labels);

// The shortest decimal that reads back as the same float: 8.49 rather than 8.489999771118164.
double shortest_decimal(float value);

// One JSON object and a line end; tools/JSON.md lists its fields.
std::string prediction_json(const Prediction& prediction, const PredictNames& names);

}  // namespace gleaner

// Predictions as people and programs read them. Pure, apart from the names it borrows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/console/terminal.hpp"
#include "common/dataset/name_table.hpp"
#include "common/dataset/point.hpp"

namespace gleaner {

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
  bool is_true = false;  // it is one of the point's own labels
};

// One point with what the model says to it.
struct Prediction {
  std::uint64_t index = 0;                // of the point in its file, from 0
  Point point;                            // values as they stand in the file
  std::vector<PredictedLabel> predicted;  // best first
  std::string name;                       // of its own; empty: as the names have it
};

// Labels of the point that are not among the predicted, ascending.
std::vector<std::uint32_t> missed_labels(const Prediction& prediction);

// The point's features of the largest magnitude, as positions in its lists, strongest first; of
// equals the smaller id first.
std::vector<std::size_t> strongest_features(const Point& point, std::size_t count);

struct PredictLayout {
  TextStyle style;
  unsigned width = 100;  // columns
};

// What stands before a predicted label that is true.
const char* true_mark(TextStyle style);

// Some lines and an empty one: the point's name, its strongest features, the predicted labels, the
// true ones among them marked, and the true ones missed.
std::string prediction_text(const Prediction& prediction, const PredictNames& names,
                            const PredictLayout& layout);

// One JSON object and a line end; tools/README.md lists its fields.
std::string prediction_json(const Prediction& prediction, const PredictNames& names);

// How often the first prediction was right, over the points that have labels.
struct PredictTally {
  std::uint64_t points = 0;
  std::uint64_t labelled = 0;
  std::uint64_t first_right = 0;

  void add(const Prediction& prediction);
};

// A sentence and a line end; empty when no point has labels.
std::string tally_text(const PredictTally& tally);

}  // namespace gleaner

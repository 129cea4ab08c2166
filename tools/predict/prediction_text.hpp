// Predictions as people read them. Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "common/console/terminal.hpp"
#include "storage/infer/prediction.hpp"

namespace gleaner {

struct PredictLayout {
  TextStyle style;
  unsigned width = 100;  // columns
};

// The mark before a predicted label that is true.
const char* true_mark(TextStyle style);

// Some lines and an empty one: the point's name, its strongest features, the predicted labels, the
// true ones among them marked, and the true ones missed.
std::string prediction_text(const Prediction& prediction, const PredictNames& names,
                            const PredictLayout& layout);

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

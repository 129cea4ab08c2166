// Predictions as people read them. Pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "common/console/terminal.hpp"
#include "storage/infer/prediction.hpp"

namespace gleaner {

struct PredictLayout {
  TextStyle style;
  unsigned width = 100;  // columns
};

// The mark before a predicted label of the example.
const char* true_mark(TextStyle style);

// Lines, then an empty one: the example's name, its strongest features, the predicted labels (true
// ones marked), and the missed labels.
std::string prediction_text(const Prediction& prediction, const PredictNames& names,
                            const PredictLayout& layout);

// A row for each predicted label below kPredictionColumns: the example's place and name, the
// label's number and name, the probability, and of an example with labels whether the label is
// true.
inline constexpr std::array kPredictionColumns = {"point",      "name",        "label",
                                                  "label_name", "probability", "is_true"};
enum class RowForm : std::uint8_t { kCsv, kTsv };
std::string prediction_rows(const Prediction& prediction, const PredictNames& names, RowForm form);

// How often the first prediction was right, over examples with labels.
struct PredictTally {
  std::uint64_t points = 0;
  std::uint64_t labelled = 0;
  std::uint64_t first_right = 0;

  void add(const Prediction& prediction);
};

// A sentence and a line end; empty when no example has labels.
std::string tally_text(const PredictTally& tally);

}  // namespace gleaner

// `gleaner predict`: predictions of a trained model, with names, for people and programs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/console/terminal.hpp"
#include "common/result.hpp"
#include "storage/infer/prediction.hpp"
#include "storage/run_store.hpp"
#include "tools/cli/console.hpp"

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

// How often the first prediction was right, over examples with labels.
struct PredictTally {
  std::uint64_t points = 0;
  std::uint64_t labelled = 0;
  std::uint64_t first_right = 0;

  void add(const Prediction& prediction);
};

// A sentence and a line end; empty when no example has labels.
std::string tally_text(const PredictTally& tally);

struct PredictFlags {
  std::string store;
  std::string data;            // folder with train.txt and test.txt; else `input`
  std::string input;           // file of examples, or "-"
  std::string text;            // folder of a data set of texts; the input is then lines of text
  std::string labels;          // file of names; empty: the file beside the input
  std::uint64_t examples = 0;  // examples to choose; 0: a few of a folder, all of a file
  std::uint64_t seed = 1;      // of that choice
  std::uint32_t top_k = 5;
  std::uint32_t threads = 0;     // 0: one a core
  std::uint32_t candidates = 0;  // neurons that the tables may propose; 0: score all
  bool why = false;              // name the deciding features
  bool json = false;
  bool show_progress = false;  // on the terminal behind stderr
  ReadFlags read;
};

// Takes whole lines of results. A failure ends the work.
using PrintText = std::function<Result<void>(const std::string&)>;

// Errors of the store name its folder, with code kCorrupt, kNotFound or kVersion. Errors of the
// examples or names have code kInvalidData, kInvalidArgument or kIo.
Result<void> run_predict(const PredictFlags& flags, std::unique_ptr<RunStore> run,
                         const PredictLayout& layout, const PrintText& print);

}  // namespace gleaner

// `gleaner predict`: predictions of a trained model, with names.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/console/terminal.hpp"
#include "common/result.hpp"
#include "storage/run_store.hpp"
#include "tools/cli/console.hpp"
#include "tools/predict/prediction_text.hpp"

namespace gleaner {

struct PredictFlags {
  std::string store;
  std::vector<std::string> texts;  // to predict for, instead of a file
  std::string data;                // folder with train.txt and test.txt; else `input`
  std::string input;               // file of examples, or "-"; or a folder with test.txt
  std::string text;                // folder of a data set of texts; the input is then lines of text
  std::string labels;              // file of names; empty: the file beside the input
  std::uint64_t examples = 0;      // examples to choose; 0: a few of a folder, all of a file
  std::uint64_t seed = 1;          // of that choice
  std::optional<std::uint32_t> top_k;  // unset: 5, or kThresholdTop with a threshold
  std::optional<float> threshold;      // least probability of a predicted label
  std::uint32_t threads = 0;           // 0: one a core
  std::uint32_t candidates = 0;        // neurons that the tables may propose; 0: score all
  bool why = false;                    // name the deciding features
  bool json = false;
  bool csv = false, tsv = false;
  std::string id;              // column or key of a record's name; empty: as in the data set
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

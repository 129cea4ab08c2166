// `gleaner predict`: what a trained model says about examples, by name.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/console/terminal.hpp"
#include "common/result.hpp"
#include "storage/run_store.hpp"
#include "tools/cli/console.hpp"
#include "tools/predict/prediction_text.hpp"

namespace gleaner {

// `gleaner predict`, once the command line is read and the store is open.
struct PredictFlags {
  std::string store;
  std::string data;            // folder with train.txt and test.txt; this or `input`
  std::string input;           // file of points, or "-"
  std::string text;            // folder of a data set of texts: the input is lines of text
  std::string labels;          // file of names; empty: what lies beside the input
  std::uint64_t examples = 0;  // points to choose; 0: a few of a folder, all of a file
  std::uint64_t seed = 1;      // of the choice
  std::uint32_t top_k = 5;
  std::uint32_t threads = 0;     // 0: one a core
  std::uint32_t candidates = 0;  // neurons that the tables may propose; 0: all are scored
  bool why = false;              // name the features that decided
  bool json = false;
  bool show_progress = false;  // on the terminal behind stderr
  ReadFlags read;
};

// Where the results go, whole lines at a time; its failure ends the work.
using PrintText = std::function<Result<void>(const std::string&)>;

// Errors of the store name its folder. An error of code kCorrupt, kNotFound or kVersion is of the
// store; what is wrong with the points or names is kInvalidData, kInvalidArgument or kIo.
Result<void> run_predict(const PredictFlags& flags, std::unique_ptr<RunStore> run,
                         const PredictLayout& layout, const PrintText& print);

}  // namespace gleaner

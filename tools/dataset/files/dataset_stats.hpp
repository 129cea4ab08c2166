// `gleaner dataset stats`.
#pragma once

#include <string>

#include "tools/cli/console.hpp"

namespace gleaner {

struct StatsFlags {
  std::string source;
  std::string out;  // picture, .svg or .png
  ReadFlags read;
  bool plot = false;  // in the terminal
  bool json = false;
  bool force = false;
};

// Prints to stdout.
Result<void> run_dataset_stats(const StatsFlags& flags);

}  // namespace gleaner

// `gleaner dataset info`: what is in a data set, and what is wrong with it.
#pragma once

#include <cstdint>
#include <string>

#include "tools/cli/console.hpp"

namespace gleaner {

struct InfoFlags {
  std::string source;
  std::string like;          // data set whose dimensions the ids must fit
  std::uint64_t limit = 20;  // problems to list
  ReadFlags read;
  bool plot = false;  // the curve of the labels' frequencies
  bool json = false;
};

// Prints to stdout. kInvalidData when the set cannot be trained on as it is.
Result<void> run_dataset_info(const InfoFlags& flags);

}  // namespace gleaner

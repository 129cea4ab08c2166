// `gleaner dataset info`.
#pragma once

#include <string>

#include "tools/cli/console.hpp"

namespace gleaner {

struct InfoFlags {
  std::string source;
  ReadFlags read;
  bool json = false;
};

// Prints to stdout.
Result<void> run_dataset_info(const InfoFlags& flags);

}  // namespace gleaner

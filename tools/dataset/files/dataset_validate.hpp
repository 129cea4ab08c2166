// `gleaner dataset validate`.
#pragma once

#include <cstdint>
#include <string>

#include "tools/cli/console.hpp"

namespace gleaner {

struct ValidateFlags {
  std::string source;
  std::string like;          // data set whose dimensions the ids must fit
  std::uint64_t limit = 20;  // problems to list
  ReadFlags read;
  bool json = false;
};

// Prints to stdout. kInvalidData when anything is wrong.
Result<void> run_dataset_validate(const ValidateFlags& flags);

}  // namespace gleaner

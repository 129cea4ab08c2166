// `gleaner dataset convert` between the forms of data sets.
#pragma once

#include <string>

#include "tools/cli/console.hpp"

namespace gleaner {

struct ConvertFlags {
  std::string source;
  std::string output;
  std::string to;    // xc, libsvm, packed; empty: as the output's name ends
  std::string like;  // data set whose dimensions the result takes on
  ReadFlags read;
  bool no_normalize = false;
  bool json = false;
  bool force = false;
};

Result<void> run_dataset_convert(const ConvertFlags& flags);

}  // namespace gleaner

// `gleaner dataset pack`.
#pragma once

#include <string>

#include "tools/cli/console.hpp"

namespace gleaner {

struct PackFlags {
  std::string source;
  std::string output;  // empty: the cache that training would make
  std::string like;    // data set whose dimensions the ids must fit
  std::string cache_dir;
  ReadFlags read;
  bool no_normalize = false;
  bool json = false;
  bool force = false;
};

Result<void> run_dataset_pack(const PackFlags& flags);

}  // namespace gleaner

// `gleaner dataset debian`.
#pragma once

#include <string>

#include "tools/cli/console.hpp"
#include "tools/dataset/make/dataset_debian_points.hpp"

namespace gleaner {

struct DebianFlags {
  std::string output;  // folder
  std::string dump;    // saved index; empty: ask apt-cache
  DebianOptions options;
  bool json = false;
  bool force = false;
};

Result<void> run_dataset_debian(const DebianFlags& flags);

}  // namespace gleaner

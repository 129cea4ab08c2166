// The package index as `apt-cache dumpavail` prints it: stanzas of `Field: value` lines, separated
// by empty lines, long values continued on lines that start with a blank.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/dataset/byte_source.hpp"
#include "common/result.hpp"

namespace gleaner {

struct DebianPackage {
  std::string name;
  std::string description;  // without line breaks
  std::string section;
  std::string maintainer;         // without the address
  std::vector<std::string> tags;  // e.g. "role::program"
  // What it needs to run (Depends and Pre-Depends): of alternatives the first, which is the one
  // that is installed when nothing else decides. Without versions; ascending; each once.
  std::vector<std::string> depends;
  std::vector<std::string> provides;
};

// Packages ascend by name; of several with one name, the first in the index stays.
Result<std::vector<DebianPackage>> read_debian_index(std::unique_ptr<ByteSource> source);

// The index of this machine, printed by apt-cache.
Result<std::string> dump_debian_index();

}  // namespace gleaner

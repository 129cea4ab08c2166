// The package index as `apt-cache dumpavail` prints it: stanzas of `Field: value` lines, separated
// by empty lines, long values continued on lines that start with a blank.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/data/byte_source.hpp"
#include "common/data/word_model.hpp"
#include "common/result.hpp"

namespace gleaner {

// Packages ascend by name; of several with one name, the first in the index stays.
Result<std::vector<DebianPackage>> read_debian_index(std::unique_ptr<ByteSource> source);

// The index of this machine, printed by apt-cache.
Result<std::string> dump_debian_index();

}  // namespace gleaner

// Where the packed form of a text file is kept, and how to tell that it still belongs to it.
#pragma once

#include <string>
#include <vector>

#include "common/data/open_or_pack.hpp"
#include "common/result.hpp"

namespace gleaner {

// Identifies the state of the text file (size, time of change, inode) and the options that affect
// the packed form. A few lines of text.
Result<std::string> source_key(const std::string& path, const PackOptions& options);

// Paths of the cache, in the order of search: beside the text file (unless its folder is marked
// read-only), then in the user's cache folder; or only in options.cache_dir.
std::vector<std::string> cache_candidates(const std::string& path, const PackOptions& options);

}  // namespace gleaner

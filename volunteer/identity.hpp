// Who a volunteer is to the masters it works for: a key, kept in its cache folder so that its
// account survives a restart.
#pragma once

#include <string>

#include "common/access/key_pair.hpp"
#include "common/result.hpp"

namespace gleaner::volunteer {

// The key in `cache_dir`/key, made there when it is missing. An empty `cache_dir` gives a new one
// each time. Errors name the file.
Result<KeyPair> load_identity(const std::string& cache_dir);

}  // namespace gleaner::volunteer

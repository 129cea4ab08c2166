// Opens a run for reading, wherever it lies: in a store, a backup or a model file.
#pragma once

#include <memory>
#include <string>

#include "common/result.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// Opens for reading what the words name: a store's folder; or a backup where it lies, as FOLDER of
// the backups (the last one) or FOLDER@NUMBER. No lock is taken and nothing is written.
Result<std::unique_ptr<Store>> open_store_to_read(const std::string& words);

// Errors from within a store do not know where it lies: puts the folder in front, unless it is
// named.
Error name_folder(Error error, const std::string& folder);

// The run in it, or in a model file (see exported_run.hpp).
Result<std::unique_ptr<RunStore>> open_run_to_read(const std::string& folder);

}  // namespace gleaner

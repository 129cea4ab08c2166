// Opens a run for reading, wherever it lies: in a store, a backup or a model file.
#pragma once

#include <memory>
#include <string>

#include "common/result.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// A model that gleaner export wrote, read like the store of a run that begins with it.

// True for a file whose name ends in .safetensors.
bool is_model_file(const std::string& path);

// In memory, at checkpoint 0, with the configuration and the label counts that the file has.
// Weights are the model's to the bit; optimizer state, history and accounts are not in a file.
Result<std::unique_ptr<RunStore>> open_exported_run(const std::string& path);

// Opens for reading what the words name: a store's folder; or a backup where it lies, as FOLDER of
// the backups (the last one) or FOLDER@NUMBER. No lock is taken and nothing is written.
Result<std::unique_ptr<Store>> open_store_to_read(const std::string& words);

// Errors from within a store do not know where it lies: puts the folder in front, unless it is
// named.
Error name_folder(Error error, const std::string& folder);

// The run in it, or in a model file (see open_to_read.hpp).
Result<std::unique_ptr<RunStore>> open_run_to_read(const std::string& folder);

}  // namespace gleaner

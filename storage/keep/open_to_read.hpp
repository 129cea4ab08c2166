// Opens a run for reading from a store, a backup or a model file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/result.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// Whether the file's name ends in .safetensors.
bool is_model_file(const std::string& path);

// The run of a model file that `gleaner export` wrote, in memory, at checkpoint 0, with the file's
// configuration and label counts. Weights are the model's to the bit; optimizer state, history and
// accounts are not in a file.
Result<std::unique_ptr<RunStore>> open_exported_run(const std::string& path);

// FOLDER or FOLDER@NUMBER, where FOLDER holds backups; number 0 is the last backup.
struct BackupWords {
  std::string folder;
  std::uint32_t number = 0;
};

std::optional<BackupWords> as_backup(const std::string& words);

// Opens a store's folder for reading, or a backup without restoring it: FOLDER of the backups (the
// last one) or FOLDER@NUMBER. Takes no lock and writes nothing.
Result<std::unique_ptr<Store>> open_store_to_read(const std::string& words);

// Puts the folder in front of the error unless the error names it: errors from within a store do
// not know the path.
Error name_folder(Error error, const std::string& folder);

// Opens the run in a store, a backup or a model file.
Result<std::unique_ptr<RunStore>> open_run_to_read(const std::string& folder);

}  // namespace gleaner

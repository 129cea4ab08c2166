// A model that gleaner export wrote, read like the store of a run that begins with it.
#pragma once

#include <memory>
#include <string>

#include "common/result.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// True for a file whose name ends in .safetensors.
bool is_model_file(const std::string& path);

// In memory, at checkpoint 0, with the configuration and the label counts that the file has.
// Weights are the model's to the bit; optimizer state, history and accounts are not in a file.
Result<std::unique_ptr<RunStore>> open_exported_run(const std::string& path);

}  // namespace gleaner

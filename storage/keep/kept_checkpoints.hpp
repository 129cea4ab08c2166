// Checkpoints of a run that are kept under names, each as a separate store in STORE.kept/NAME.
// Table files are hard links, so that keeping a checkpoint costs little time and, until the run's
// files change, little space. Log and manifest are copied, since they grow by appending.
//
// A checkpoint can be kept without a lock while a master writes the store: a copy counts only if
// the manifest did not change meanwhile, so that files and log belong together.
#pragma once

#include <string>
#include <vector>

#include "common/ids.hpp"
#include "common/result.hpp"

namespace gleaner {

// The path of the kept checkpoint `name`, whether or not it exists.
std::string kept_path(const std::string& store, const std::string& name);

// The names of all complete kept checkpoints, in order.
std::vector<std::string> kept_names(const std::string& store);

// The paths of readable kept checkpoints before `checkpoint`, the earliest first.
std::vector<std::string> kept_before(const std::string& store, RoundIndex checkpoint);

// Keeps the present state of the store, completely or not at all. kInvalidArgument when the name is
// unsuitable or taken, kBusy when the store changes too often to be copied. `reach` is the path to
// the store's files if it is not `store`; see HeldFolder.
Result<void> keep_checkpoint(const std::string& store, const std::string& name,
                             const std::string& reach = {});

// Keeps the store's state in any folder of the same file system, and replaces earlier content.
Result<void> link_store(const std::string& store, const std::string& target);

// Deletes a kept checkpoint, never the store itself. kBusy when a process is writing it.
Result<void> drop_kept(const std::string& store, const std::string& name);

}  // namespace gleaner

// Checkpoints of a run that are kept under names, each a store of its own in STORE.kept/NAME. Table
// files are hard links, so keeping one costs little time and, until the run's own files change,
// little room; what is written by appending, the log and the manifest, is copied.
//
// Made beside a master that writes the store, without a lock: what is copied counts only if the
// manifest did not change meanwhile, so that files and log are of one moment.
#pragma once

#include <string>
#include <vector>

#include "common/ids.hpp"
#include "common/result.hpp"

namespace gleaner {

// Where the checkpoint of the name is kept, or would be.
std::string kept_path(const std::string& store, const std::string& name);

// The names of those that are whole, in order.
std::vector<std::string> kept_names(const std::string& store);

// Where those before `checkpoint` are kept that can be read, the earliest first.
std::vector<std::string> kept_before(const std::string& store, RoundIndex checkpoint);

// Keeps the store as it is now. kInvalidArgument when the name will not do or is taken, kBusy when
// the store changes too often to be caught. It is there whole or not at all. `reach`: the path to
// the store's files where it is not its name; see HeldFolder.
Result<void> keep_checkpoint(const std::string& store, const std::string& name,
                             const std::string& reach = {});

// Keeps it in a folder of any name on the same file system; what is there is replaced.
Result<void> link_store(const std::string& store, const std::string& target);

// Deletes a kept one; never the store itself. kBusy when a process is writing it.
Result<void> drop_kept(const std::string& store, const std::string& name);

}  // namespace gleaner

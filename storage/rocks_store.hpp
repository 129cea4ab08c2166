// The Store on RocksDB.
#pragma once

#include <memory>
#include <string>

#include "storage/store.hpp"

namespace gleaner {

enum class OpenMode {
  kReadWrite,  // the master: creates what is missing, holds the lock
  kReadOnly,   // tools: a consistent view, also while a master writes; takes no lock
};

// kBusy when another process holds the store, kNotFound when a store to be read does not exist,
// kCorrupt when RocksDB says so. Errors name the path and say what to do.
Result<std::unique_ptr<Store>> open_rocks_store(const std::string& path, OpenMode mode);

}  // namespace gleaner

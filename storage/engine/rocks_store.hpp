// The Store on RocksDB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "storage/engine/store.hpp"
#include "storage/engine/store_folder.hpp"

namespace gleaner {

enum class OpenMode {
  kReadWrite,  // the master: creates a missing store, holds the lock
  kReadOnly,   // tools: a consistent view, also while a master writes; takes no lock
};

// Synced batches of at least this size bypass the log (see RocksBulkWriter). For smaller batches,
// the extra files and syncs cost more than writing the bytes twice.
inline constexpr std::size_t kRocksBulkBytes = std::size_t{2} << 20;

struct RocksStoreOptions {
  std::size_t bulk_bytes = kRocksBulkBytes;
  // A write leaves this part of the disk free, because RocksDB writes more by itself afterwards: it
  // empties its buffers (at most 280 MiB) and merges tables.
  std::uint64_t reserve_bytes = std::uint64_t{256} << 20;
};

// Errors: kBusy when another process holds the store, kNotFound when a store to be read does not
// exist, kCorrupt when RocksDB finds damage, kDiskFull when there is no room to open it. Errors
// name the path and the remedy.
Result<std::unique_ptr<Store>> open_rocks_store(const std::string& path, OpenMode mode,
                                                const RocksStoreOptions& options = {});

// Opens a held folder (hold_store_folder()) for writing. kIdentity when it is not at its path.
Result<std::unique_ptr<Store>> open_rocks_store(const std::shared_ptr<HeldFolder>& folder,
                                                const RocksStoreOptions& options);

// Reads every table file in the folder of a store that does not open. Nobody may be writing the
// store. One error per damaged file.
std::vector<Error> damaged_table_files(const std::string& path);

}  // namespace gleaner

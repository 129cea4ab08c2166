// RocksDB's options, and its errors in our terms. Included by rocks_*.cpp only.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/bytes.hpp"
#include "common/result.hpp"
#include "storage/engine/store.hpp"

namespace gleaner {

inline constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;

rocksdb::DBOptions rocks_database_options();

// Options for a database that is opened read-only.
rocksdb::DBOptions rocks_reading_options();

// One per table, in order, then RocksDB's default family, which stays empty.
std::vector<rocksdb::ColumnFamilyDescriptor> rocks_column_families();

// Opens a backup's database at `name` in `env` for reading, without copying it. Errors call it
// `shown`.
Result<std::unique_ptr<Store>> open_rocks_backup(const std::string& shown, const std::string& name,
                                                 std::shared_ptr<rocksdb::Env> env);

// Whether the status means that the disk, or the user's quota, is full.
bool is_out_of_room(const rocksdb::Status& status);

// The error for a failed status. `doing` names the operation on the store at `path`.
Error rocks_error(const rocksdb::Status& status, const std::string& path, const char* doing);

inline rocksdb::Slice to_slice(ByteView view) {
  return {reinterpret_cast<const char*>(view.data()), view.size()};
}

inline ByteView to_view(const rocksdb::Slice& slice) {
  return {reinterpret_cast<const std::uint8_t*>(slice.data()), slice.size()};
}

}  // namespace gleaner

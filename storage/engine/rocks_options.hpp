// How RocksDB is set up, and its answers in our words. Included by rocks_*.cpp only.
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

// Options for a database that is opened as it stands and not written to.
rocksdb::DBOptions rocks_reading_options();

// One for each table, in their order, then RocksDB's default one, which stays empty.
std::vector<rocksdb::ColumnFamilyDescriptor> rocks_column_families();

// Opens the database at `name` in `env`, a backup where it lies, for reading; errors call it
// `shown`.
Result<std::unique_ptr<Store>> open_rocks_backup(const std::string& shown, const std::string& name,
                                                 std::shared_ptr<rocksdb::Env> env);

// Whether it says that there is no room: on the disk, or in the user's quota of it.
bool is_out_of_room(const rocksdb::Status& status);

// The error for a status that is not ok(); `doing` what to the store at `path`.
Error rocks_error(const rocksdb::Status& status, const std::string& path, const char* doing);

inline rocksdb::Slice to_slice(ByteView view) {
  return {reinterpret_cast<const char*>(view.data()), view.size()};
}

inline ByteView to_view(const rocksdb::Slice& slice) {
  return {reinterpret_cast<const std::uint8_t*>(slice.data()), slice.size()};
}

}  // namespace gleaner

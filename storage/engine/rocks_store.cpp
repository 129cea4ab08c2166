#include "storage/engine/rocks_store.hpp"

#include <fmt/format.h>
#include <rocksdb/db.h>

#include <algorithm>
#include <set>
#include <utility>

#include "common/result.hpp"
#include "storage/engine/rocks_database.hpp"
#include "storage/engine/rocks_options.hpp"

namespace gleaner {
namespace {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Status;

// A writer may remove files while a reader opens them: the most attempts of the reader.
constexpr int kReadOnlyAttemptsMax = 50;

// A database of another program has its content in the default family, or has other families.
Result<void> check_families(const std::string& path) {
  std::vector<std::string> names;
  const Status status = rocksdb::DB::ListColumnFamilies(rocksdb::DBOptions(), path, &names);
  if (!status.ok()) return rocks_error(status, path, "opening");
  for (const std::string& name : names) {
    const bool is_ours =
        name == rocksdb::kDefaultColumnFamilyName ||
        std::ranges::any_of(kTableNames, [&](const char* ours) { return name == ours; });
    if (is_ours) continue;
    return Error{ErrorCode::kVersion,
                 fmt::format("{} holds a database with a table '{}', which this version of "
                             "Gleaner does not know: name another --store, or use the version "
                             "that made it",
                             path, name)};
  }
  if (names.size() != 1) return {};
  rocksdb::DB* opened = nullptr;
  const Status read = rocksdb::DB::OpenForReadOnly(rocksdb::Options(), path, &opened);
  if (!read.ok()) return rocks_error(read, path, "opening");
  const std::unique_ptr<rocksdb::DB> database(opened);
  const std::unique_ptr<rocksdb::Iterator> at(database->NewIterator(rocksdb::ReadOptions()));
  at->SeekToFirst();
  if (!at->Valid()) return {};  // the creation of a store was interrupted here
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("{} holds a database that is not Gleaner's: name another --store", path)};
}

Error held_by_another(const std::string& path) {
  return {ErrorCode::kBusy, fmt::format("another gleaner-master is using the store {}: stop it "
                                        "first, or name another --store",
                                        path)};
}

// A view of the present files, with the log replayed in memory. Nothing is locked or written, so a
// writer may remove a file after its name is read and before it is opened. A missing table makes
// the opening fail, but a missing log may not. So the opening counts only if every earlier log
// still exists afterwards: then its content was read, or was in the tables already.
Result<std::unique_ptr<Store>> open_read_only(const std::string& path) {
  if (auto found = find_store_folder(path); !found) return found.error();
  const rocksdb::DBOptions options = rocks_reading_options();
  Status status;
  for (int attempt = 0; attempt < kReadOnlyAttemptsMax; ++attempt) {
    const std::set<std::string> logs_before = log_files(path);
    rocksdb::DB* opened = nullptr;
    std::vector<ColumnFamilyHandle*> families;
    status =
        rocksdb::DB::OpenForReadOnly(options, path, rocks_column_families(), &families, &opened);
    if (!status.ok()) continue;
    auto store = std::make_unique<RocksStore>(path, std::unique_ptr<rocksdb::DB>(opened),
                                              std::move(families));
    if (std::ranges::includes(log_files(path), logs_before)) {
      return std::unique_ptr<Store>(std::move(store));
    }
    status = Status::TryAgain("its files keep changing");
  }
  if (status.IsInvalidArgument()) {
    return Error{ErrorCode::kNotFound, fmt::format("{} holds no run of this version of Gleaner: {}",
                                                   path, status.ToString())};
  }
  return rocks_error(status, path, "opening");
}

}  // namespace

Result<std::unique_ptr<Store>> open_rocks_backup(const std::string& shown, const std::string& name,
                                                 std::shared_ptr<rocksdb::Env> env) {
  rocksdb::DBOptions options = rocks_reading_options();
  options.env = env.get();
  options.wal_dir = name;
  rocksdb::DB* opened = nullptr;
  std::vector<ColumnFamilyHandle*> families;
  const Status status =
      rocksdb::DB::OpenForReadOnly(options, name, rocks_column_families(), &families, &opened);
  if (!status.ok()) return rocks_error(status, shown, "opening");
  return std::unique_ptr<Store>(std::make_unique<RocksStore>(
      shown, std::unique_ptr<rocksdb::DB>(opened), std::move(families), std::move(env)));
}

Result<std::unique_ptr<Store>> open_rocks_store(const std::shared_ptr<HeldFolder>& folder,
                                                const RocksStoreOptions& writing) {
  if (auto in_place = folder->check(); !in_place) return in_place.error();
  if (!folder->lock()) return held_by_another(folder->path());
  if (holds_database(folder->reach())) {
    if (auto checked = check_families(folder->reach()); !checked) {
      return folder->named(checked.error());
    }
  }
  rocksdb::DBOptions options = rocks_database_options();
  options.create_if_missing = !folder->has_note();  // never recreates a lost store
  options.create_missing_column_families = true;
  const auto watch = std::make_shared<RoomWatch>();
  options.listeners.push_back(watch);
  rocksdb::DB* database = nullptr;
  std::vector<ColumnFamilyHandle*> families;
  const Status status =
      rocksdb::DB::Open(options, folder->reach(), rocks_column_families(), &families, &database);
  if (status.ok()) {
    folder->note("LOCK");
    return std::unique_ptr<Store>(std::make_unique<RocksStore>(
        folder, writing, watch, std::unique_ptr<rocksdb::DB>(database), std::move(families)));
  }
  // RocksDB has no code for a taken lock.
  if (status.IsIOError() && status.ToString().find("lock") != std::string::npos) {
    return held_by_another(folder->path());
  }
  return folder->named(rocks_error(status, folder->path(), "opening"));
}

Result<std::unique_ptr<Store>> open_rocks_store(const std::string& path, OpenMode mode,
                                                const RocksStoreOptions& options) {
  if (mode == OpenMode::kReadOnly) return open_read_only(path);
  const auto folder = hold_store_folder(path);
  if (!folder) return folder.error();
  return open_rocks_store(*folder, options);
}

std::vector<Error> damaged_table_files(const std::string& path) {
  return check_table_files(path, table_files(path));
}

}  // namespace gleaner

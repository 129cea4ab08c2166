#include "storage/rocks_store.hpp"

#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "storage/rocks_bulk.hpp"
#include "storage/rocks_options.hpp"
#include "storage/store_folder.hpp"

namespace gleaner {
namespace {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Slice;
using rocksdb::Status;

// A writer that removes files while a reader opens them makes it try again, so many times.
constexpr int kReadOnlyAttemptsMax = 50;

class RocksStore : public Store {
 public:
  // `bulk_bytes` is nullopt for a store that is only read.
  RocksStore(std::string path, std::optional<std::size_t> bulk_bytes,
             std::unique_ptr<rocksdb::DB> database, std::vector<ColumnFamilyHandle*> families)
      : path_(std::move(path)),
        bulk_bytes_(bulk_bytes),
        database_(std::move(database)),
        families_(std::move(families)) {
    if (bulk_bytes_) bulk_.emplace(*database_, families_, path_);
  }

  ~RocksStore() override {
    for (ColumnFamilyHandle* family : families_) {
      database_->DestroyColumnFamilyHandle(family).PermitUncheckedError();
    }
    database_->Close().PermitUncheckedError();
  }

  RocksStore(const RocksStore&) = delete;
  RocksStore& operator=(const RocksStore&) = delete;

  Result<std::optional<Bytes>> get(Table table, ByteView key) override {
    rocksdb::PinnableSlice value;
    const Status status =
        database_->Get(rocksdb::ReadOptions(), family(table), to_slice(key), &value);
    if (status.IsNotFound()) return std::optional<Bytes>();
    if (!status.ok()) return rocks_error(status, path_, "reading");
    const ByteView view = to_view(value);
    return std::optional<Bytes>(Bytes(view.begin(), view.end()));
  }

  Result<void> scan(Table table, ByteView begin, ByteView end,
                    const std::function<bool(ByteView, ByteView)>& visit) override {
    rocksdb::ReadOptions options;
    // Scans pass over whole shards, which would push everything else out of the cache.
    options.fill_cache = false;
    const Slice upper_bound = to_slice(end);
    if (!end.empty()) options.iterate_upper_bound = &upper_bound;
    const std::unique_ptr<rocksdb::Iterator> at(database_->NewIterator(options, family(table)));
    for (at->Seek(to_slice(begin)); at->Valid(); at->Next()) {
      if (!visit(to_view(at->key()), to_view(at->value()))) return {};
    }
    if (!at->status().ok()) return rocks_error(at->status(), path_, "reading");
    return {};
  }

  Result<void> write(WriteBatch batch, Durability durability) override {
    if (!bulk_bytes_) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("the store {} is open for reading only", path_)};
    }
    if (has_failed_) {
      return Error{ErrorCode::kIo, fmt::format("a write to the store {} failed before: open it "
                                               "again to go on from what is on the disk",
                                               path_)};
    }
    const bool is_bulk = durability == Durability::kSync && batch.bytes() >= *bulk_bytes_ &&
                         RocksBulkWriter::can_write(batch);
    const Status status = is_bulk ? bulk_->write(batch) : write_through_log(batch, durability);
    if (status.ok()) return {};
    has_failed_ = true;
    return rocks_error(status, path_, "writing to");
  }

 private:
  ColumnFamilyHandle* family(Table table) { return families_[static_cast<std::size_t>(table)]; }

  Status write_through_log(WriteBatch& batch, Durability durability) {
    constexpr std::size_t kOperationBytes = 16;  // at most: kind, table and two lengths
    rocksdb::WriteBatch rocks_batch(batch.bytes() + batch.size() * kOperationBytes + 16);
    Status status;
    batch.consume([&](Table table, ByteView key, std::optional<ByteView> value) {
      if (!status.ok()) return;
      status = value.has_value() ? rocks_batch.Put(family(table), to_slice(key), to_slice(*value))
                                 : rocks_batch.Delete(family(table), to_slice(key));
    });
    if (!status.ok()) return status;
    rocksdb::WriteOptions options;
    options.sync = durability == Durability::kSync;
    return database_->Write(options, &rocks_batch);
  }

  std::string path_;
  std::optional<std::size_t> bulk_bytes_;
  std::unique_ptr<rocksdb::DB> database_;
  std::vector<ColumnFamilyHandle*> families_;  // by table, then the default one
  std::optional<RocksBulkWriter> bulk_;
  bool has_failed_ = false;
};

// A database that is not ours keeps its content in the default family, or in others.
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
  if (!at->Valid()) return {};  // the creation of a store was cut off here
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("{} holds a database that is not Gleaner's: name another --store", path)};
}

Result<std::unique_ptr<Store>> open_read_write(const std::string& path, std::size_t bulk_bytes) {
  if (auto prepared = prepare_store_folder(path); !prepared) return prepared.error();
  if (holds_database(path)) {
    if (auto checked = check_families(path); !checked) return checked.error();
  }
  rocksdb::DBOptions options = rocks_database_options();
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  rocksdb::DB* database = nullptr;
  std::vector<ColumnFamilyHandle*> families;
  const Status status =
      rocksdb::DB::Open(options, path, rocks_column_families(), &families, &database);
  if (status.ok()) {
    return std::unique_ptr<Store>(std::make_unique<RocksStore>(
        path, bulk_bytes, std::unique_ptr<rocksdb::DB>(database), std::move(families)));
  }
  // RocksDB has no code of its own for a lock that is taken.
  if (status.IsIOError() && status.ToString().find("lock") != std::string::npos) {
    return Error{ErrorCode::kBusy, fmt::format("another gleaner-master is using the store {}: "
                                               "stop it first, or name another --store",
                                               path)};
  }
  return rocks_error(status, path, "opening");
}

// A view of the files as they are, with the log replayed in memory. Nothing is locked or written,
// so a writer may remove a file between the moment its name is read and the moment it is opened. A
// table that is gone makes the opening fail; a log that is gone may not, so the opening only counts
// if every log that was there before it is there after it: what a log held has then either been
// read from it or was in the tables already.
Result<std::unique_ptr<Store>> open_read_only(const std::string& path) {
  if (auto found = find_store_folder(path); !found) return found.error();
  rocksdb::DBOptions options = rocks_database_options();
  options.max_open_files = -1;  // holds every table open, so that none can be removed under it
  Status status;
  for (int attempt = 0; attempt < kReadOnlyAttemptsMax; ++attempt) {
    const std::set<std::string> logs_before = log_files(path);
    rocksdb::DB* opened = nullptr;
    std::vector<ColumnFamilyHandle*> families;
    status =
        rocksdb::DB::OpenForReadOnly(options, path, rocks_column_families(), &families, &opened);
    if (!status.ok()) continue;
    auto store = std::make_unique<RocksStore>(
        path, std::nullopt, std::unique_ptr<rocksdb::DB>(opened), std::move(families));
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

Result<std::unique_ptr<Store>> open_rocks_store(const std::string& path, OpenMode mode,
                                                std::size_t bulk_bytes) {
  return mode == OpenMode::kReadWrite ? open_read_write(path, bulk_bytes) : open_read_only(path);
}

}  // namespace gleaner

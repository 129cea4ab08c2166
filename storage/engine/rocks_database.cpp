#include "storage/engine/rocks_database.hpp"

#include <fmt/format.h>
#include <rocksdb/metadata.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/table_properties.h>
#include <rocksdb/utilities/checkpoint.h>
#include <rocksdb/write_batch.h>

#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "storage/engine/rocks_bulk_writer.hpp"
#include "storage/engine/rocks_options.hpp"
#include "storage/engine/store_folder.hpp"

namespace gleaner {
namespace {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Slice;
using rocksdb::Status;

// A snapshot copies the log and the manifest.
constexpr std::uint64_t kSnapshotBytesMax = std::uint64_t{140} << 20;

}  // namespace

class RocksStore::SortedFiles : public SortedWriter {
 public:
  explicit SortedFiles(RocksStore& store)
      : store_(store), files_(*store.database_, store.families_, store.folder_->reach()) {}

  Result<void> put(Table table, ByteView key, ByteView value) override {
    return store_.outcome_of(files_.put(table, key, value));
  }

  Result<void> erase(Table table, ByteView key) override {
    return store_.outcome_of(files_.erase(table, key));
  }

  Result<void> finish() override {
    if (store_.has_failed_) return store_.failed_before();
    return store_.outcome_of(files_.finish());
  }

 private:
  RocksStore& store_;
  RocksBulkWriter files_;
};

RocksStore::RocksStore(std::string path, std::unique_ptr<rocksdb::DB> database, Families families,
                       std::shared_ptr<rocksdb::Env> env)
    : path_(std::move(path)),
      env_(std::move(env)),
      database_(std::move(database)),
      families_(std::move(families)) {}

RocksStore::RocksStore(std::shared_ptr<const HeldFolder> folder, const RocksStoreOptions& writing,
                       std::shared_ptr<RoomWatch> watch, std::unique_ptr<rocksdb::DB> database,
                       Families families)
    : path_(folder->path()),
      folder_(std::move(folder)),
      writing_(writing),
      watch_(std::move(watch)),
      database_(std::move(database)),
      families_(std::move(families)) {
  RocksBulkWriter::clear_away(folder_->reach());
  remove_snapshot();  // left by a killed process
}

RocksStore::~RocksStore() {
  for (ColumnFamilyHandle* family : families_) {
    database_->DestroyColumnFamilyHandle(family).PermitUncheckedError();
  }
  database_->Close().PermitUncheckedError();
}

Result<std::optional<Bytes>> RocksStore::get(Table table, ByteView key) {
  rocksdb::PinnableSlice value;
  const Status status =
      database_->Get(rocksdb::ReadOptions(), family(table), to_slice(key), &value);
  if (status.IsNotFound()) return std::optional<Bytes>();
  if (!status.ok()) return error(status, "reading");
  const ByteView view = to_view(value);
  return std::optional<Bytes>(Bytes(view.begin(), view.end()));
}

Result<void> RocksStore::scan(Table table, ByteView begin, ByteView end,
                              const std::function<bool(ByteView, ByteView)>& visit) {
  rocksdb::ReadOptions options;
  // Scans read whole shards and would evict everything else from the cache.
  options.fill_cache = false;
  const Slice upper_bound = to_slice(end);
  if (!end.empty()) options.iterate_upper_bound = &upper_bound;
  const std::unique_ptr<rocksdb::Iterator> at(database_->NewIterator(options, family(table)));
  for (at->Seek(to_slice(begin)); at->Valid(); at->Next()) {
    if (!visit(to_view(at->key()), to_view(at->value()))) return {};
  }
  if (!at->status().ok()) return error(at->status(), "reading");
  return {};
}

Result<void> RocksStore::write(WriteBatch batch, Durability durability) {
  if (auto writable = check_writable(batch.bytes()); !writable) return writable;
  return outcome_of(write_through_log(batch, durability));
}

Result<std::unique_ptr<SortedWriter>> RocksStore::begin_sorted(std::uint64_t bytes) {
  if (auto writable = check_writable(bytes); !writable) return writable.error();
  if (bytes < writing_->bulk_bytes) return Store::begin_sorted(bytes);
  return std::unique_ptr<SortedWriter>(std::make_unique<SortedFiles>(*this));
}

Result<void> RocksStore::erase_range(Table table, ByteView begin, ByteView end,
                                     Durability durability) {
  bool is_empty = true;
  const auto note = [&](ByteView, ByteView) { return is_empty = false; };
  const Result<void> scanned = scan(table, begin, end, note);
  // A record that cannot be read still exists, and can be erased.
  if (scanned && is_empty) return {};
  if (auto writable = check_writable(begin.size() + end.size()); !writable) return writable;
  const Bytes beyond_all_keys(32, 0xff);
  rocksdb::WriteOptions options;
  options.sync = durability == Durability::kSync;
  return outcome_of(database_->DeleteRange(options, family(table), to_slice(begin),
                                           to_slice(end.empty() ? beyond_all_keys : end)));
}

Result<void> RocksStore::check_room(std::uint64_t bytes) {
  if (!writing_) return {};
  // RocksDB would retry by itself, and silently stall writes meanwhile.
  if (watch_->ran_out()) {
    return unsure(error(Status::NoSpace("while it merged tables"), "writing to"));
  }
  // A batch through the log is written twice; a batch past it is soon merged into other files.
  const std::uint64_t needed = 2 * bytes + writing_->reserve_bytes;
  const std::optional<std::uint64_t> free = free_bytes(folder_->reach());
  if (!free || *free >= needed) return {};
  return Error{ErrorCode::kDiskFull,
               fmt::format("the disk of the store {} has {} MiB free, and {} MiB are needed, {} of "
                           "them as --disk-reserve: free some, or start with a smaller reserve",
                           path_, *free / kMebibyte, (needed + kMebibyte - 1) / kMebibyte,
                           writing_->reserve_bytes / kMebibyte)};
}

Result<std::string> RocksStore::snapshot() {
  if (auto room = check_room(kSnapshotBytesMax); !room) return room.error();
  const std::string folder = remove_snapshot();
  rocksdb::Checkpoint* made = nullptr;
  Status status = rocksdb::Checkpoint::Create(database_.get(), &made);
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  // The log is copied, not flushed: less to write, and the tables stay as they are.
  constexpr std::uint64_t kNeverFlush = std::numeric_limits<std::uint64_t>::max();
  if (status.ok()) status = checkpoint->CreateCheckpoint(folder, kNeverFlush);
  if (!status.ok()) return error(status, "making a snapshot of");
  return folder;
}

Result<std::vector<TableSpace>> RocksStore::space() {
  return rocks_space(*database_, {families_.data(), kTableCount});
}

std::vector<Error> RocksStore::damaged_files() {
  std::vector<rocksdb::LiveFileMetaData> live;
  database_->GetLiveFilesMetaData(&live);
  std::vector<std::string> names;
  for (const rocksdb::LiveFileMetaData& file : live) names.push_back(file.relative_filename);
  if (env_) return check_table_files(database_->GetName(), names, *env_);
  return check_table_files(folder_ ? folder_->reach() : path_, names);
}

std::string RocksStore::remove_snapshot() {
  std::string folder = folder_->reach() + "/snapshot";
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  return folder;
}

Result<void> RocksStore::check_writable(std::uint64_t bytes) {
  if (!writing_) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the store {} is open for reading only", path_)};
  }
  if (has_failed_) return failed_before();
  if (auto in_place = folder_->check(); !in_place) return in_place;
  return check_room(bytes);
}

Error RocksStore::failed_before() const {
  return {ErrorCode::kIo, fmt::format("a write to the store {} failed before: open it again to "
                                      "go on from what is on the disk",
                                      path_)};
}

Result<void> RocksStore::outcome_of(const Status& written) {
  if (written.ok()) return {};
  return unsure(error(written, "writing to"));
}

Error RocksStore::error(const Status& status, const char* doing) const {
  if (!folder_) return rocks_error(status, path_, doing);
  const Result<void> in_place = folder_->check();
  return in_place ? folder_->named(rocks_error(status, path_, doing)) : in_place.error();
}

Error RocksStore::unsure(Error error) {
  has_failed_ = true;
  if (error.code == ErrorCode::kDiskFull) error.code = ErrorCode::kStoreUnsure;
  return error;
}

ColumnFamilyHandle* RocksStore::family(Table table) {
  return families_[static_cast<std::size_t>(table)];
}

Status RocksStore::write_through_log(WriteBatch& batch, Durability durability) {
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

std::vector<TableSpace> rocks_space(rocksdb::DB& database,
                                    std::span<rocksdb::ColumnFamilyHandle* const> families) {
  std::vector<TableSpace> tables;
  for (std::size_t i = 0; i < families.size(); ++i) {
    rocksdb::ColumnFamilyMetaData data;
    database.GetColumnFamilyMetaData(families[i], &data);
    TableSpace space;
    space.table = static_cast<Table>(i);
    space.file_bytes = data.size;
    for (const rocksdb::LevelMetaData& level : data.levels) {
      if (level.files.empty()) continue;
      space.levels.push_back({level.level, level.files.size(), level.size});
    }
    // The manifest does not know this figure.
    rocksdb::TablePropertiesCollection files;
    if (database.GetPropertiesOfAllTables(families[i], &files).ok()) {
      for (const auto& [name, properties] : files) space.records += properties->num_entries;
    }
    database.GetIntProperty(families[i], rocksdb::DB::Properties::kCurSizeAllMemTables,
                            &space.newest_bytes);
    tables.push_back(std::move(space));
  }
  return tables;
}

std::vector<Error> check_table_files(const std::string& path, const std::vector<std::string>& names,
                                     rocksdb::Env& env) {
  std::vector<Error> damaged;
  rocksdb::Options options(rocks_reading_options(), rocks_column_families().front().options);
  options.env = &env;
  for (const std::string& name : names) {
    const std::string file = (std::filesystem::path(path) / name).string();
    rocksdb::SstFileReader reader(options);
    rocksdb::Status status = reader.Open(file);
    if (status.ok()) status = reader.VerifyChecksum();
    if (status.ok() || env.FileExists(file).IsNotFound()) continue;
    damaged.push_back(
        {ErrorCode::kCorrupt, fmt::format("the file {} is damaged: {}", name, status.ToString())});
  }
  return damaged;
}

}  // namespace gleaner

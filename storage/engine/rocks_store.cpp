#include "storage/engine/rocks_store.hpp"

#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/listener.h>
#include <rocksdb/metadata.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table_properties.h>
#include <rocksdb/utilities/checkpoint.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "common/bytes.hpp"
#include "common/result.hpp"
#include "storage/engine/rocks_options.hpp"
#include "storage/engine/store.hpp"
#include "storage/engine/store_folder.hpp"

namespace gleaner {

namespace {

// Large batches past RocksDB's log: one sorted file a table, written as it is made and then taken
// over by all tables in one atomic change of the manifest. A fold through the log would be held in
// memory, written twice (log and table), and replayed at every opening.
class RocksBulkWriter {
 public:
  // `families` by table. Borrows both.
  RocksBulkWriter(rocksdb::DB& database, std::span<rocksdb::ColumnFamilyHandle* const> families,
                  const std::string& store_path);
  // Removes the files that the database has not taken over.
  ~RocksBulkWriter();
  RocksBulkWriter(const RocksBulkWriter&) = delete;
  RocksBulkWriter& operator=(const RocksBulkWriter&) = delete;

  // After a failure, that failure.
  const rocksdb::Status& put(Table table, ByteView key, ByteView value);
  const rocksdb::Status& erase(Table table, ByteView key);
  // Everything that was put is in the database when it returns ok, and as durable as everything
  // written before.
  const rocksdb::Status& finish();

  // Removes what a process that was killed left half written.
  static void clear_away(const std::string& store_path);

 private:
  struct TableFile {
    std::unique_ptr<rocksdb::SstFileWriter> writer;
    std::string path;
  };

  void open(Table table);
  // Opened, unless that failed.
  TableFile& file_of(Table table);

  rocksdb::DB& database_;
  std::span<rocksdb::ColumnFamilyHandle* const> families_;
  std::string store_path_;
  std::array<TableFile, kTableCount> files_;
  rocksdb::Status status_;
};

std::string folder_of(const std::string& store_path) {
  return store_path + "/incoming";
}

RocksBulkWriter::RocksBulkWriter(rocksdb::DB& database,
                                 std::span<rocksdb::ColumnFamilyHandle* const> families,
                                 const std::string& store_path)
    : database_(database), families_(families), store_path_(store_path) {
  std::error_code error;
  std::filesystem::create_directories(folder_of(store_path_), error);
  if (!error) return;
  status_ = error == std::errc::no_space_on_device ? rocksdb::Status::NoSpace(error.message())
                                                   : rocksdb::Status::IOError(error.message());
}

RocksBulkWriter::~RocksBulkWriter() {
  for (TableFile& file : files_) file.writer.reset();
  clear_away(store_path_);
}

void RocksBulkWriter::clear_away(const std::string& store_path) {
  std::error_code error;  // what stays is written over
  std::filesystem::remove_all(folder_of(store_path), error);
}

void RocksBulkWriter::open(Table table) {
  const auto index = static_cast<std::size_t>(table);
  TableFile& file = files_[index];
  rocksdb::EnvOptions env_options;
  env_options.bytes_per_sync = 1 << 20;
  // The next fold reads these rows: they may stay in the page cache.
  file.writer = std::make_unique<rocksdb::SstFileWriter>(
      env_options, database_.GetOptions(families_[index]), families_[index],
      /*invalidate_page_cache=*/false);
  file.path = folder_of(store_path_) + "/" + table_name(table);
  status_ = file.writer->Open(file.path);
}

RocksBulkWriter::TableFile& RocksBulkWriter::file_of(Table table) {
  TableFile& file = files_[static_cast<std::size_t>(table)];
  if (status_.ok() && !file.writer) open(table);
  return file;
}

const rocksdb::Status& RocksBulkWriter::put(Table table, ByteView key, ByteView value) {
  TableFile& file = file_of(table);
  if (status_.ok()) status_ = file.writer->Put(to_slice(key), to_slice(value));
  return status_;
}

const rocksdb::Status& RocksBulkWriter::erase(Table table, ByteView key) {
  TableFile& file = file_of(table);
  if (status_.ok()) status_ = file.writer->Delete(to_slice(key));
  return status_;
}

const rocksdb::Status& RocksBulkWriter::finish() {
  std::vector<rocksdb::IngestExternalFileArg> arguments;
  for (std::size_t index = 0; index < kTableCount && status_.ok(); ++index) {
    if (!files_[index].writer) continue;
    status_ = files_[index].writer->Finish();  // synced
    rocksdb::IngestExternalFileArg& argument = arguments.emplace_back();
    argument.column_family = families_[index];
    argument.external_files = {files_[index].path};
    argument.options.move_files = true;
    argument.options.write_global_seqno = false;
  }
  // A lazy write before must not be lost where this is not.
  if (status_.ok()) status_ = database_.FlushWAL(/*sync=*/true);
  if (status_.ok() && !arguments.empty()) status_ = database_.IngestExternalFiles(arguments);
  return status_;
}

// `families` by table.
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
    // The manifest does not know it.
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

// Reads the table files of these names in the folder whole: data, index and filter. One error a
// file that is damaged; a file that is gone was merged into others by the store's writer.
std::vector<Error> check_table_files(const std::string& path, const std::vector<std::string>& names,
                                     rocksdb::Env& env = *rocksdb::Env::Default()) {
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

using rocksdb::ColumnFamilyHandle;
using rocksdb::Slice;
using rocksdb::Status;

// A writer that removes files while a reader opens them makes it try again, at most this often.
constexpr int kReadOnlyAttemptsMax = 50;

// Notes that RocksDB's own threads ran out of room. Called on those threads.
class RoomWatch : public rocksdb::EventListener {
 public:
  void OnBackgroundError(rocksdb::BackgroundErrorReason, Status* error) override {
    if (is_out_of_room(*error)) ran_out_ = true;
  }

  [[nodiscard]] bool ran_out() const { return ran_out_; }

 private:
  std::atomic<bool> ran_out_{false};
};

class RocksStore : public Store {
 public:
  // A store that is only read. `env` is of a backup, whose files it finds.
  RocksStore(std::string path, std::unique_ptr<rocksdb::DB> database,
             std::vector<ColumnFamilyHandle*> families, std::shared_ptr<rocksdb::Env> env = nullptr)
      : path_(std::move(path)),
        env_(std::move(env)),
        database_(std::move(database)),
        families_(std::move(families)) {}

  RocksStore(std::shared_ptr<const HeldFolder> folder, const RocksStoreOptions& writing,
             std::shared_ptr<RoomWatch> watch, std::unique_ptr<rocksdb::DB> database,
             std::vector<ColumnFamilyHandle*> families)
      : path_(folder->path()),
        folder_(std::move(folder)),
        writing_(writing),
        watch_(std::move(watch)),
        database_(std::move(database)),
        families_(std::move(families)) {
    RocksBulkWriter::clear_away(folder_->reach());
    remove_snapshot();  // of a process that was killed
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
    if (!status.ok()) return error(status, "reading");
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
    if (!at->status().ok()) return error(at->status(), "reading");
    return {};
  }

  Result<void> write(WriteBatch batch, Durability durability) override {
    if (auto writable = check_writable(batch.bytes()); !writable) return writable;
    return outcome_of(write_through_log(batch, durability));
  }

  Result<std::unique_ptr<SortedWriter>> begin_sorted(std::uint64_t bytes) override {
    if (auto writable = check_writable(bytes); !writable) return writable.error();
    if (bytes < writing_->bulk_bytes) return Store::begin_sorted(bytes);
    return std::unique_ptr<SortedWriter>(std::make_unique<SortedFiles>(*this));
  }

  Result<void> erase_range(Table table, ByteView begin, ByteView end,
                           Durability durability) override {
    bool is_empty = true;
    const auto note = [&](ByteView, ByteView) { return is_empty = false; };
    const Result<void> scanned = scan(table, begin, end, note);
    // A record that cannot be read is there, and can be erased all the same.
    if (scanned && is_empty) return {};
    if (auto writable = check_writable(begin.size() + end.size()); !writable) return writable;
    const Bytes beyond_all_keys(32, 0xff);
    rocksdb::WriteOptions options;
    options.sync = durability == Durability::kSync;
    return outcome_of(database_->DeleteRange(options, family(table), to_slice(begin),
                                             to_slice(end.empty() ? beyond_all_keys : end)));
  }

  Result<void> check_room(std::uint64_t bytes) override {
    if (!writing_) return {};
    // RocksDB would try again by itself, and stall writes meanwhile without a word.
    if (watch_->ran_out()) {
      return unsure(error(Status::NoSpace("while it merged tables"), "writing to"));
    }
    // A batch through the log is written twice, one past it is soon merged into others.
    const std::uint64_t needed = 2 * bytes + writing_->reserve_bytes;
    const std::optional<std::uint64_t> free = free_bytes(folder_->reach());
    if (!free || *free >= needed) return {};
    return Error{ErrorCode::kDiskFull,
                 fmt::format("the disk of the store {} has {} MiB free, and {} MiB are needed",
                             path_, *free / kMebibyte, (needed + kMebibyte - 1) / kMebibyte)};
  }

  Result<std::string> snapshot() override {
    if (auto room = check_room(kSnapshotBytesMax); !room) return room.error();
    const std::string folder = remove_snapshot();
    rocksdb::Checkpoint* made = nullptr;
    Status status = rocksdb::Checkpoint::Create(database_.get(), &made);
    const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
    // The log is copied rather than flushed: less to write, and the tables stay as they are.
    constexpr std::uint64_t kNeverFlush = std::numeric_limits<std::uint64_t>::max();
    if (status.ok()) status = checkpoint->CreateCheckpoint(folder, kNeverFlush);
    if (!status.ok()) return error(status, "making a snapshot of");
    return folder;
  }

  Result<std::vector<TableSpace>> space() override {
    return rocks_space(*database_, {families_.data(), kTableCount});
  }

  std::vector<Error> damaged_files() override {
    std::vector<rocksdb::LiveFileMetaData> live;
    database_->GetLiveFilesMetaData(&live);
    std::vector<std::string> names;
    for (const rocksdb::LiveFileMetaData& file : live) names.push_back(file.relative_filename);
    if (env_) return check_table_files(database_->GetName(), names, *env_);
    return check_table_files(folder_ ? folder_->reach() : path_, names);
  }

 private:
  class SortedFiles : public SortedWriter {
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

  // A snapshot copies the log and the manifest.
  static constexpr std::uint64_t kSnapshotBytesMax = std::uint64_t{140} << 20;

  // Returns where it was. What cannot be removed makes the next one fail.
  std::string remove_snapshot() {
    std::string folder = folder_->reach() + "/snapshot";
    std::error_code error;
    std::filesystem::remove_all(folder, error);
    return folder;
  }

  Result<void> check_writable(std::uint64_t bytes) {
    if (!writing_) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("the store {} is open for reading only", path_)};
    }
    if (has_failed_) return failed_before();
    if (auto in_place = folder_->check(); !in_place) return in_place;
    return check_room(bytes);
  }

  [[nodiscard]] Error failed_before() const {
    return {ErrorCode::kIo, fmt::format("a write to the store {} failed before: open it again to "
                                        "go on from what is on the disk",
                                        path_)};
  }

  Result<void> outcome_of(const Status& written) {
    if (written.ok()) return {};
    return unsure(error(written, "writing to"));
  }

  // A folder that is not in its place explains most errors in it.
  [[nodiscard]] Error error(const Status& status, const char* doing) const {
    if (!folder_) return rocks_error(status, path_, doing);
    const Result<void> in_place = folder_->check();
    return in_place ? folder_->named(rocks_error(status, path_, doing)) : in_place.error();
  }

  // From now on nobody knows what the disk holds.
  Error unsure(Error error) {
    has_failed_ = true;
    if (error.code == ErrorCode::kDiskFull) error.code = ErrorCode::kStoreUnsure;
    return error;
  }

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
  std::shared_ptr<const HeldFolder> folder_;  // of a writer; outlives the database
  std::shared_ptr<rocksdb::Env> env_;         // outlives the database; null for the machine's own
  std::optional<RocksStoreOptions> writing_;
  std::shared_ptr<RoomWatch> watch_;
  std::unique_ptr<rocksdb::DB> database_;
  std::vector<ColumnFamilyHandle*> families_;  // by table, then the default one
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

Error held_by_another(const std::string& path) {
  return {ErrorCode::kBusy, fmt::format("another gleaner-master is using the store {}: stop it "
                                        "first, or name another --store",
                                        path)};
}

// A view of the files as they are, with the log replayed in memory. Nothing is locked or written,
// so a writer may remove a file between the moment its name is read and the moment it is opened. A
// table that is gone makes the opening fail; a log that is gone may not, so the opening only counts
// if every log that was there before it is there after it: what a log held has then either been
// read from it or was in the tables already.
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
  options.create_if_missing = !folder->has_note();  // what was there is not made again
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
  // RocksDB has no code of its own for a lock that is taken.
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

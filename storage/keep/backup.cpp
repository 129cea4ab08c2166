// Backups with RocksDB's backup engine.
#include "storage/keep/backup.hpp"

#include <fmt/format.h>
#include <rocksdb/utilities/backup_engine.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <future>
#include <system_error>
#include <utility>

#include "common/os/files.hpp"
#include "storage/engine/rocks_options.hpp"
#include "storage/engine/rocks_store.hpp"
#include "storage/engine/store_folder.hpp"
#include "storage/run_records.hpp"
#include "storage/run_store.hpp"

namespace gleaner {
namespace {

namespace fs = std::filesystem;
using rocksdb::Status;

constexpr std::chrono::milliseconds kProgressPeriod{200};

Error backup_error(const Status& status, const std::string& folder, const char* doing) {
  const std::string what = status.ToString();
  if (is_out_of_room(status)) {
    return {ErrorCode::kDiskFull,
            fmt::format("there is no room on the disk for {} the backups in {}: {}", doing, folder,
                        os::room_remedy(status.IsNoSpace() ? ENOSPC : EDQUOT, folder))};
  }
  if (status.IsNotFound()) {
    return {ErrorCode::kNotFound, fmt::format("there is no such backup in {}: gleaner backup list "
                                              "{} shows them",
                                              folder, folder)};
  }
  if (status.IsCorruption()) {
    return {ErrorCode::kCorrupt,
            fmt::format("a backup in {} is damaged ({}): use another one", folder, what)};
  }
  return {ErrorCode::kIo, fmt::format("{} the backups in {} failed: {}", doing, folder, what)};
}

// Moves the restored store from `beside` to the target. If the process is killed between two steps,
// complete stores remain.
std::error_code put_in_place(const std::string& beside, const std::string& target,
                             const std::string& replaced, bool is_taken) {
  std::error_code error;
  if (is_taken) {
    fs::remove_all(replaced, error);
    if (!error) fs::rename(target, replaced, error);
    if (!error) fs::rename(beside, target, error);
    if (!error) fs::remove_all(replaced, error);
  } else {
    fs::rename(beside, target, error);
    // A killed earlier attempt may have moved the target there.
    if (!error && holds_database(replaced)) fs::remove_all(replaced, error);
  }
  return error;
}

}  // namespace

struct BackupFolder::Impl {
  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  ~Impl() {
    writer.reset();
    if (lock >= 0) os::close_file(lock);
  }

  // To read a backup's files directly, the engine must use absolute paths.
  [[nodiscard]] rocksdb::BackupEngineOptions options() const {
    std::error_code error;
    return rocksdb::BackupEngineOptions(fs::absolute(folder, error).string());
  }

  std::string folder;
  int lock = -1;                                  // an open file of a writer
  std::unique_ptr<rocksdb::BackupEngine> writer;  // one of the two is set
  std::unique_ptr<rocksdb::BackupEngineReadOnly> reader;

  [[nodiscard]] const rocksdb::BackupEngineReadOnlyBase& engine() const {
    if (writer) return *writer;
    return *reader;
  }
};

bool holds_backups(const std::string& folder) {
  std::error_code error;
  return fs::is_directory(fs::path(folder) / "meta", error);
}

BackupFolder::BackupFolder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

BackupFolder::~BackupFolder() = default;

Result<std::unique_ptr<BackupFolder>> BackupFolder::open(const std::string& folder,
                                                         BackupAccess access) {
  auto impl = std::make_unique<Impl>();
  impl->folder = folder;
  std::error_code error;
  Status status;
  if (access == BackupAccess::kRead) {
    if (!holds_backups(folder)) {
      return Error{ErrorCode::kNotFound,
                   fmt::format("there are no backups in {}: name the folder that was given to "
                               "gleaner-master as --backup",
                               folder)};
    }
    rocksdb::BackupEngineReadOnly* opened = nullptr;
    status = rocksdb::BackupEngineReadOnly::Open(impl->options(), rocksdb::Env::Default(), &opened);
    impl->reader.reset(opened);
  } else {
    fs::create_directories(folder, error);
    impl->lock = os::open_locked(folder + "/LOCK", /*makes=*/true);
    if (impl->lock < 0 && errno == EWOULDBLOCK) {
      return Error{ErrorCode::kBusy,
                   fmt::format("another gleaner-master keeps its backups in {}: name another "
                               "--backup",
                               folder)};
    }
    if (impl->lock < 0) {
      return Error{is_out_of_room(errno) ? ErrorCode::kDiskFull : ErrorCode::kIo,
                   fmt::format("backups cannot be written to {}: {}", folder,
                               std::generic_category().message(errno))};
    }
    rocksdb::BackupEngine* opened = nullptr;
    status = rocksdb::BackupEngine::Open(impl->options(), rocksdb::Env::Default(), &opened);
    impl->writer.reset(opened);
  }
  if (!status.ok()) return backup_error(status, folder, "opening");
  return std::unique_ptr<BackupFolder>(new BackupFolder(std::move(impl)));
}

std::vector<Backup> BackupFolder::list() const {
  std::vector<rocksdb::BackupInfo> infos;
  impl_->engine().GetBackupInfo(&infos);
  std::vector<Backup> backups;
  for (const rocksdb::BackupInfo& info : infos) {
    // A backup that another program made has no record; it is listed without one.
    const BackupRecord record =
        decode_record<BackupRecord>(info.app_metadata).value_or(BackupRecord{});
    backups.push_back({info.backup_id, record.checkpoint, record.run, info.timestamp, info.size});
  }
  std::ranges::sort(backups, {}, &Backup::number);
  return backups;
}

Result<Backup> BackupFolder::choose(std::uint32_t number_or_0) const {
  const std::vector<Backup> all = list();
  for (const Backup& backup : all) {
    if (backup.number == number_or_0) return backup;
  }
  if (number_or_0 == 0 && !all.empty()) return all.back();
  return Error{ErrorCode::kNotFound,
               number_or_0 == 0
                   ? fmt::format("there is no complete backup in {}", impl_->folder)
                   : fmt::format("there is no backup {} in {}: gleaner backup list {} shows them",
                                 number_or_0, impl_->folder, impl_->folder)};
}

Result<std::unique_ptr<Store>> BackupFolder::open_store(std::uint32_t number) const {
  rocksdb::BackupInfo info;
  const Status status = impl_->engine().GetBackupInfo(number, &info, /*include_file_details=*/true);
  if (!status.ok()) return backup_error(status, impl_->folder, "reading");
  return open_rocks_backup(fmt::format("{}@{}", impl_->folder, number), info.name_for_open,
                           info.env_for_open);
}

Result<Backup> BackupFolder::add(const std::string& snapshot, const std::atomic<bool>& is_stopped) {
  BackupRecord record;
  {
    auto store = open_rocks_store(snapshot, OpenMode::kReadOnly);
    if (!store) return store.error();
    auto run = RunStore::open(std::move(*store));
    if (!run) return run.error();
    record.checkpoint = (*run)->checkpoint();
    record.run = run_name((*run)->identity());
  }
  for (const Backup& earlier : list()) {
    if (earlier.run == record.run) continue;
    return Error{
        ErrorCode::kIdentity,
        fmt::format("{} holds backups of another run: name another --backup", impl_->folder)};
  }
  std::vector<rocksdb::ColumnFamilyHandle*> families;
  rocksdb::DB* opened = nullptr;
  Status status = rocksdb::DB::OpenForReadOnly(rocks_reading_options(), snapshot,
                                               rocks_column_families(), &families, &opened);
  if (!status.ok()) return rocks_error(status, snapshot, "reading");
  const std::unique_ptr<rocksdb::DB> database(opened);
  rocksdb::BackupID number = 0;
  rocksdb::CreateBackupOptions options;
  options.progress_callback = [&] {
    if (is_stopped) impl_->writer->StopBackup();
  };
  if (!is_stopped) {
    status = impl_->writer->CreateNewBackupWithMetadata(options, database.get(),
                                                        encode_record(record), &number);
  }
  for (auto* family : families) database->DestroyColumnFamilyHandle(family).PermitUncheckedError();
  if (is_stopped) {
    return Error{ErrorCode::kShuttingDown, "the backup was given up: the run was stopped"};
  }
  if (!status.ok()) return backup_error(status, impl_->folder, "writing");
  return list().back();
}

Result<void> BackupFolder::keep_last(std::uint32_t count) {
  const Status status = impl_->writer->PurgeOldBackups(count);
  if (!status.ok()) return backup_error(status, impl_->folder, "removing old ones of");
  return {};
}

Result<void> BackupFolder::verify(std::uint32_t number) const {
  const Status status = impl_->engine().VerifyBackup(number, /*verify_with_checksum=*/true);
  if (!status.ok()) return backup_error(status, impl_->folder, "reading");
  return {};
}

Result<void> BackupFolder::restore(std::uint32_t number, const std::string& target, bool replace,
                                   const std::function<void(std::uint64_t)>& progress) const {
  std::error_code error;
  const bool is_taken = fs::exists(target, error) && !fs::is_empty(target, error);
  if (is_taken && !replace) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is not empty: name another folder for the store, or give --force "
                             "to replace what it holds",
                             target)};
  }
  rocksdb::BackupInfo info;
  Status status = impl_->engine().GetBackupInfo(number, &info);
  if (!status.ok()) return backup_error(status, impl_->folder, "reading");
  const std::string base = without_slash(target);
  const std::string beside = base + kRestoringSuffix;
  if (free_bytes(target).value_or(info.size) < info.size) {
    return Error{
        ErrorCode::kDiskFull,
        fmt::format("the disk of {} does not have {} MiB free, which the backup takes: free "
                    "some, or name a folder on another disk",
                    target, (info.size >> 20) + 1)};
  }
  // Takes the master's lock, so that no master uses or takes the store that is replaced.
  rocksdb::FileLock* lock = nullptr;
  rocksdb::Env& env = *rocksdb::Env::Default();
  if (is_taken && holds_database(target) && !env.LockFile(target + "/LOCK", &lock).ok()) {
    return Error{ErrorCode::kBusy,
                 fmt::format("a gleaner-master is using the store {}: stop it first", target)};
  }
  fs::remove_all(beside, error);
  std::future<Status> restored = std::async(std::launch::async, [&]() -> Status {
    // A separate engine: after a failure its threads go on writing until it is destroyed.
    rocksdb::BackupEngineReadOnly* opened = nullptr;
    const Status is_open =
        rocksdb::BackupEngineReadOnly::Open(impl_->options(), rocksdb::Env::Default(), &opened);
    if (!is_open.ok()) return is_open;
    const std::unique_ptr<rocksdb::BackupEngineReadOnly> engine(opened);
    return engine->RestoreDBFromBackup(rocksdb::RestoreOptions(), number, beside, beside);
  });
  while (restored.wait_for(kProgressPeriod) != std::future_status::ready) {
    progress(folder_bytes(beside));
  }
  status = restored.get();
  if (status.ok()) {
    error = put_in_place(beside, target, base + kReplacedSuffix, is_taken);
  } else {
    fs::remove_all(beside, error);
  }
  if (lock != nullptr) env.UnlockFile(lock).PermitUncheckedError();
  if (!status.ok()) return backup_error(status, impl_->folder, "restoring from");
  if (!error) return {};
  return Error{ErrorCode::kIo, fmt::format("{} cannot be put in its place at {}: {}", beside,
                                           target, error.message())};
}

}  // namespace gleaner

// A folder of backups of one run's store. Backups share files that did not change between them, yet
// each can be restored alone. Every file has a checksum. README.md specifies the folder.
//
// Only one process may add or remove at a time; others may list, verify and restore meanwhile.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/ids.hpp"
#include "common/result.hpp"
#include "storage/engine/store.hpp"

namespace gleaner {

struct Backup {
  std::uint32_t number = 0;  // ascending from 1
  RoundIndex checkpoint = 0;
  std::string run;                // names the run: equal for equal model configurations
  std::int64_t wall_seconds = 0;  // when it was made, seconds since 1970
  std::uint64_t bytes = 0;        // of its files, shared files included
};

enum class BackupAccess : std::uint8_t {
  kRead,
  kWrite,  // makes a missing folder; kBusy when another process has it
};

// Whether the folder has backups, perhaps unfinished.
bool holds_backups(const std::string& folder);

class BackupFolder {
 public:
  // kNotFound when there is no folder to read.
  static Result<std::unique_ptr<BackupFolder>> open(const std::string& folder, BackupAccess access);
  ~BackupFolder();
  BackupFolder(const BackupFolder&) = delete;
  BackupFolder& operator=(const BackupFolder&) = delete;

  // The complete backups, oldest first.
  [[nodiscard]] std::vector<Backup> list() const;

  // Copies the store at `snapshot` (see Store::snapshot), which must not change meanwhile. A
  // failure does not affect earlier backups. kIdentity when these belong to another run;
  // kShuttingDown soon after another thread has set `is_stopped`.
  Result<Backup> add(const std::string& snapshot, const std::atomic<bool>& is_stopped);
  // The backup with this number, or the last for 0. kNotFound names the existing backups.
  [[nodiscard]] Result<Backup> choose(std::uint32_t number_or_0) const;
  // Opens a backup for reading without restoring it. Reading fails if the backup is removed.
  [[nodiscard]] Result<std::unique_ptr<Store>> open_store(std::uint32_t number) const;
  // Removes all backups but the last `count`.
  Result<void> keep_last(std::uint32_t count);

  // Reads the whole backup. kCorrupt names a missing or changed file.
  Result<void> verify(std::uint32_t number) const;
  // Restores the backup as the store `target`: writes it beside `target` first and then renames it,
  // so that the store is complete or absent. Replaces an existing store only with `replace`, and
  // never while a master uses it (kBusy). Calls `progress` from time to time with the bytes
  // written.
  Result<void> restore(std::uint32_t number, const std::string& target, bool replace,
                       const std::function<void(std::uint64_t)>& progress) const;

 private:
  struct Impl;
  explicit BackupFolder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gleaner

// A folder of backups of one run's store. Backups share the files that did not change between them
// and can each be restored alone. Every file of one has a checksum. README.md says what is in it.
//
// One process at a time adds or removes; others may list, verify and restore meanwhile.
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
  std::string run;                // which run it is of: equal for equal model configurations
  std::int64_t wall_seconds = 0;  // when it was made, seconds since 1970
  std::uint64_t bytes = 0;        // of its files, also those that it shares
};

enum class BackupAccess : std::uint8_t {
  kRead,
  kWrite,  // makes the folder when it does not exist; kBusy when another process has it
};

// True when there are backups in the folder, perhaps unfinished ones.
bool holds_backups(const std::string& folder);

class BackupFolder {
 public:
  // kNotFound when there is no folder to read.
  static Result<std::unique_ptr<BackupFolder>> open(const std::string& folder, BackupAccess access);
  ~BackupFolder();
  BackupFolder(const BackupFolder&) = delete;
  BackupFolder& operator=(const BackupFolder&) = delete;

  // Whole ones, in the order in which they were made.
  [[nodiscard]] std::vector<Backup> list() const;

  // Copies the store at `snapshot` (see Store::snapshot), which nobody changes meanwhile. After a
  // failure the backups that were there are there. kIdentity when they are of another run;
  // kShuttingDown soon after another thread has set `is_stopped`.
  Result<Backup> add(const std::string& snapshot, const std::atomic<bool>& is_stopped);
  // The last backup, or the one of the number; kNotFound says what there is.
  [[nodiscard]] Result<Backup> choose(std::uint32_t number_or_0) const;
  // Opens a backup where it lies, for reading. Removing it meanwhile makes reading fail.
  [[nodiscard]] Result<std::unique_ptr<Store>> open_store(std::uint32_t number) const;
  // Removes all but the last `count`.
  Result<void> keep_last(std::uint32_t count);

  // kCorrupt names what is missing or not what was written. Reads all of it.
  Result<void> verify(std::uint32_t number) const;
  // Makes `target` the store that was backed up: written beside it first, then put in its place, so
  // that it is there whole or not at all. What `target` holds is replaced only if `replace`, and
  // not while a master uses it (kBusy). `progress` is called now and then with the bytes written.
  Result<void> restore(std::uint32_t number, const std::string& target, bool replace,
                       const std::function<void(std::uint64_t)>& progress) const;

 private:
  struct Impl;
  explicit BackupFolder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gleaner

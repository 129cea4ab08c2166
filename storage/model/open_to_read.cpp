#include "storage/model/open_to_read.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <optional>

#include "storage/backup.hpp"
#include "storage/engine/rocks_store.hpp"
#include "storage/model/exported_run.hpp"

namespace gleaner {
namespace {

// FOLDER or FOLDER@NUMBER, where FOLDER has backups in it; 0 is the last one.
struct BackupWords {
  std::string folder;
  std::uint32_t number = 0;
};

std::optional<BackupWords> as_backup(const std::string& words) {
  if (holds_backups(words)) return BackupWords{words, 0};
  const std::size_t at = words.rfind('@');
  if (at == std::string::npos || !holds_backups(words.substr(0, at))) return std::nullopt;
  BackupWords backup{words.substr(0, at), 0};
  const char* const end = words.data() + words.size();
  const auto parsed = std::from_chars(words.data() + at + 1, end, backup.number);
  if (parsed.ec != std::errc() || parsed.ptr != end || backup.number == 0) return std::nullopt;
  return backup;
}

}  // namespace

Error name_folder(Error error, const std::string& folder) {
  if (error.message.find(folder) == std::string::npos) {
    error.message = fmt::format("{}: {}", folder, error.message);
  }
  return error;
}

Result<std::unique_ptr<Store>> open_store_to_read(const std::string& words) {
  const std::optional<BackupWords> named = as_backup(words);
  if (!named) return open_rocks_store(words, OpenMode::kReadOnly);
  const auto backups = BackupFolder::open(named->folder, BackupAccess::kRead);
  if (!backups) return backups.error();
  const Result<Backup> backup = (*backups)->choose(named->number);
  if (!backup) return backup.error();
  return (*backups)->open_store(backup->number);
}

Result<std::unique_ptr<RunStore>> open_run_to_read(const std::string& folder) {
  if (is_model_file(folder)) return open_exported_run(folder);
  auto store = open_store_to_read(folder);
  if (!store) return name_folder(store.error(), folder);
  auto run = RunStore::open(std::move(*store));
  if (!run) return name_folder(run.error(), folder);
  return run;
}

}  // namespace gleaner

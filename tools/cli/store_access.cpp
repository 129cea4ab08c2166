#include "tools/cli/store_access.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>

#include "common/exit_code.hpp"
#include "storage/backup.hpp"
#include "storage/engine/rocks_store.hpp"
#include "storage/master_note.hpp"
#include "storage/model/exported_run.hpp"

namespace gleaner {
namespace {

// Whatever is wrong with a store that was to be read is the store's.
ExitCode exit_status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kVersion:
    case ErrorCode::kNotFound:
      return ExitCode::kStore;
    default:
      return exit_code_of(code);
  }
}

// Errors from within a store do not know where it lies.
Error name_folder(Error error, const std::string& folder) {
  if (error.message.find(folder) == std::string::npos) {
    error.message = fmt::format("{}: {}", folder, error.message);
  }
  return error;
}

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

bool is_place(const std::string& word) {
  std::error_code ignored;
  return word.find(':') != std::string::npos || std::filesystem::is_directory(word, ignored);
}

void give_way_to_master(const std::string& folder) {
  // It concerns one thread in Linux, here the only one. Any process may have less.
  const sched_param none{};
  if (writer_of(folder)) ::sched_setscheduler(0, SCHED_IDLE, &none);
}

int run_on_store(const std::string& folder, const std::function<Result<void>(RunStore&)>& action) {
  Result<std::unique_ptr<RunStore>> run = open_run_to_read(folder);
  const Result<void> done = run ? action(**run) : Result<void>(run.error());
  if (done) return 0;
  return report_on_store(name_folder(done.error(), folder));
}

Result<void> name_folder(Result<void> result, const std::string& folder) {
  if (result) return result;
  return name_folder(result.error(), folder);
}

int report_on_store(const Result<void>& result) {
  if (result) return 0;
  fmt::print(stderr, "gleaner: {}\n", result.error().message);
  return static_cast<int>(exit_status_of(result.error().code));
}

}  // namespace gleaner

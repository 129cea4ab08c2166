#include "storage/engine/store_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace gleaner {
namespace {

namespace fs = std::filesystem;

// Every complete database has this file.
constexpr const char* kCurrentFile = "CURRENT";

// errno has the reason why `verb` failed.
Error no_access(const std::string& path, const char* verb) {
  if (errno == EROFS) {
    return {ErrorCode::kIo, fmt::format("the store {} may not be {}: its file system is read-only; "
                                        "mount it for writing or name another one",
                                        path, verb)};
  }
  return {ErrorCode::kIo, fmt::format("the store {} may not be {} by this user: change its "
                                      "permissions or name another one",
                                      path, verb)};
}

// The master's key and access book, which may be in the folder before the run, copied from another
// run.
bool is_key_file(const fs::path& path) {
  return path.filename() == "master.key" || path.filename() == "access";
}

// Files of an interrupted creation, written before CURRENT.
bool is_database_debris(const fs::path& file) {
  const std::string name = file.filename().string();
  for (const char* prefix : {"LOG", "LOCK", "IDENTITY", "MANIFEST-", "OPTIONS-"}) {
    if (name.starts_with(prefix)) return true;
  }
  return file.extension() == ".dbtmp" || file.extension() == ".log";
}

std::set<std::string> files_ending(const std::string& path, const char* ending) {
  std::set<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    if (entry.path().extension() == ending) names.insert(entry.path().filename().string());
  }
  return names;
}

// A killed `gleaner restore` may leave its target missing and its work beside it. A new run must
// not begin there.
Result<void> refuse_half_restored(const std::string& path) {
  std::error_code error;
  const std::string base = without_slash(path);
  const std::string beside = base + kRestoringSuffix;
  if (base.ends_with(kRestoringSuffix)) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} is the unfinished work of a gleaner restore: run "
                             "gleaner restore again, and name the store that it makes",
                             path)};
  }
  if (holds_database(path) || !fs::exists(beside, error)) return {};
  const std::string replaced = base + kReplacedSuffix;
  const std::string before =
      holds_database(replaced) ? fmt::format("; the store that was there is {}", replaced) : "";
  return Error{ErrorCode::kCorrupt,
               fmt::format("a gleaner restore into {} has not finished: run it again, or delete {} "
                           "if the store is not wanted{}",
                           path, beside, before)};
}

constexpr const char* kNoteFile = "/MASTER";
constexpr const char* kPlaceFile = "/PLACE";
constexpr const char* kPlain = "plain";
constexpr const char* kLockFile = "/LOCK";  // RocksDB's

std::string place_in(const std::string& store) {
  std::ifstream file(store + kPlaceFile);
  std::string place;
  std::getline(file, place);
  return place;
}

}  // namespace

std::string without_slash(const std::string& path) {
  std::string base = fs::path(path).lexically_normal().string();
  if (base.ends_with('/')) base.pop_back();
  return base;
}

bool is_out_of_room(int error_number) {
  return error_number == ENOSPC || error_number == EDQUOT;
}

bool can_take_room(const std::string& path, std::uint64_t bytes) {
  const std::string probe = path + "/room.dbtmp";
  const int file = ::open(probe.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return !is_out_of_room(errno);
  // A file system that cannot allocate without writing gives no answer beforehand.
  const bool has_failed = bytes > 0 && ::fallocate(file, 0, 0, static_cast<off_t>(bytes)) != 0;
  const bool is_out = has_failed && is_out_of_room(errno);
  ::close(file);
  ::unlink(probe.c_str());
  return !is_out;
}

bool holds_database(const std::string& path) {
  std::error_code error;
  return fs::exists(fs::path(path) / kCurrentFile, error);
}

Result<void> prepare_store_folder(const std::string& path) {
  if (auto whole = refuse_half_restored(path); !whole) return whole;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    fs::create_directories(path, error);
    if (!error) return {};
    const ErrorCode code = is_out_of_room(error.value()) ? ErrorCode::kDiskFull : ErrorCode::kIo;
    return Error{
        code, fmt::format("the folder {} cannot be made for the store: {}", path, error.message())};
  }
  if (status.type() == fs::file_type::none) {
    return Error{ErrorCode::kIo,
                 fmt::format("the store {} cannot be reached: {}", path, error.message())};
  }
  if (!fs::is_directory(status)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is not a folder: name a new or an empty one as --store", path)};
  }
  if (access(path.c_str(), R_OK | X_OK) != 0) return no_access(path, "read");
  if (access(path.c_str(), W_OK) != 0) return no_access(path, "written");
  if (holds_database(path)) return {};
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    if (is_database_debris(entry.path()) || is_key_file(entry.path())) continue;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is not a store: it holds other files, such as '{}'; name a new or "
                             "an empty folder as --store",
                             path, entry.path().filename().string())};
  }
  if (!error) return {};
  errno = error.value();
  return no_access(path, "read");
}

Result<std::shared_ptr<HeldFolder>> hold_store_folder(const std::string& path) {
  if (auto prepared = prepare_store_folder(path); !prepared) return prepared.error();
  return HeldFolder::open(
      path, "the store",
      "move it back, or name its new place as --store; if it is gone, restore a "
      "backup (gleaner restore --help)");
}

Result<void> find_store_folder(const std::string& path) {
  if (auto whole = refuse_half_restored(path); !whole) return whole;
  std::error_code error;
  if (!fs::exists(path, error)) {
    if (error) {
      return Error{ErrorCode::kIo,
                   fmt::format("the store {} cannot be reached: {}", path, error.message())};
    }
    return Error{ErrorCode::kNotFound,
                 fmt::format("there is no store at {}: name the folder that was given to "
                             "gleaner-master as --store",
                             path)};
  }
  const bool is_folder = fs::is_directory(path, error);
  if (is_folder && access(path.c_str(), R_OK | X_OK) != 0) return no_access(path, "read");
  if (!is_folder || !holds_database(path)) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("{} is not a store: name the folder that was given to gleaner-master "
                             "as --store",
                             path)};
  }
  return {};
}

std::optional<std::uint64_t> free_bytes(const std::string& path) {
  std::error_code error;
  // Before the folder exists, asks for the place where it will be.
  fs::path place = path;
  while (!fs::exists(place, error) && place.has_relative_path()) place = place.parent_path();
  const fs::space_info space = fs::space(place.empty() ? fs::path(".") : place, error);
  if (error) return std::nullopt;
  return space.available;
}

std::string files_state(const std::string& path) {
  std::string state;
  const auto add = [&state](const std::string& file) {
    struct stat facts {};

    if (::stat(file.c_str(), &facts) != 0) return;
    state += fmt::format("{} {} {} {}.{}\n", file, facts.st_ino, facts.st_size,
                         facts.st_ctim.tv_sec, facts.st_ctim.tv_nsec);
  };
  add(path);
  std::error_code error;
  fs::recursive_directory_iterator entry(path, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    add(entry->path().string());
  }
  return state;
}

std::uint64_t folder_bytes(const std::string& path) {
  std::uint64_t bytes = 0;
  std::error_code error;
  // A running master removes files and folders meanwhile, so no step may throw.
  fs::recursive_directory_iterator entry(path, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code gone;
    const std::uint64_t size = entry->is_regular_file(gone) ? entry->file_size(gone) : 0;
    if (!gone) bytes += size;
  }
  return bytes;
}

std::set<std::string> log_files(const std::string& path) {
  return files_ending(path, ".log");
}

std::vector<std::string> table_files(const std::string& path) {
  const std::set<std::string> names = files_ending(path, ".sst");
  return {names.begin(), names.end()};
}

std::string note_place(const std::string& store, const std::string& place) {
  const std::string noted = place_in(store);
  if (noted == place) return {};
  if (!noted.empty() && place_in(noted) == noted) return noted;
  std::ofstream(store + kPlaceFile) << place << '\n';
  return {};
}

MasterNote::MasterNote(const std::string& store, const RunningMaster& master)
    : path_(store + kNoteFile) {
  // Written beside and renamed, so that a reader never sees a part of it.
  const std::string beside = path_ + ".dbtmp";
  {
    std::ofstream file(beside);
    file << master.address << ' ' << master.life << ' ' << (master.is_plain ? kPlain : "tls")
         << '\n';
  }
  std::error_code error;
  std::filesystem::rename(beside, path_, error);
}

MasterNote::~MasterNote() {
  std::error_code error;
  std::filesystem::remove(path_, error);
}

std::optional<RunningMaster> read_master_note(const std::string& store) {
  std::ifstream file(store + kNoteFile);
  RunningMaster master;
  std::string port;
  if (!(file >> master.address >> master.life >> port)) return std::nullopt;
  master.is_plain = port == kPlain;
  return master;
}

std::optional<int> writer_of(const std::string& store) {
  const int file = ::open((store + kLockFile).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;

  struct flock lock {};

  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  const bool is_told = ::fcntl(file, F_GETLK, &lock) == 0;
  ::close(file);
  if (!is_told || lock.l_type == F_UNLCK) return std::nullopt;
  return static_cast<int>(lock.l_pid);
}

}  // namespace gleaner

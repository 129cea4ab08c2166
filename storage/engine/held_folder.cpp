#include "storage/engine/held_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

namespace gleaner {

Result<std::shared_ptr<HeldFolder>> HeldFolder::open(const std::string& path, const char* what,
                                                     const char* remedy) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) {
    return Error{ErrorCode::kIo, fmt::format("{} {} cannot be opened: {}", what, path,
                                             std::generic_category().message(errno))};
  }
  return std::shared_ptr<HeldFolder>(new HeldFolder(path, what, remedy, descriptor));
}

HeldFolder::HeldFolder(std::string path, const char* what, const char* remedy, int descriptor)
    : path_(std::move(path)),
      what_(what),
      remedy_(remedy),
      descriptor_(descriptor),
      reach_(fmt::format("/proc/self/fd/{}", descriptor)) {}

HeldFolder::~HeldFolder() {
  ::close(descriptor_);
}

Result<void> HeldFolder::check() const {
  struct stat held {};

  struct stat named {};

  struct stat file {};

  const bool is_held = ::fstat(descriptor_, &held) == 0 && held.st_nlink > 0;
  const bool is_named = ::stat(path_.c_str(), &named) == 0;
  std::string what;
  if (is_held && is_named && named.st_dev == held.st_dev && named.st_ino == held.st_ino) {
    const bool is_there =
        noted_.empty() || (::fstatat(descriptor_, noted_.c_str(), &file, 0) == 0 &&
                           file.st_dev == device_ && file.st_ino == number_);
    if (is_there) return {};
    what = "lost its files, or got others";
  } else if (is_held) {
    std::error_code error;
    what = "was moved to " + std::filesystem::read_symlink(reach_, error).string();
  } else {
    what = "was removed";
  }
  const bool is_replaced = is_named && what.starts_with("was");
  if (is_replaced) what += ", and there is another folder in its place,";
  return Error{ErrorCode::kIdentity,
               fmt::format("{} {} {} while it was written to: {}", what_, path_, what, remedy_)};
}

void HeldFolder::note(const std::string& file) {
  struct stat facts {};

  if (::fstatat(descriptor_, file.c_str(), &facts, 0) != 0) return;
  noted_ = file;
  device_ = facts.st_dev;
  number_ = facts.st_ino;
}

bool HeldFolder::lock() const {
  // On a file system that cannot lock a folder, RocksDB's own lock protects the store.
  return ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

Error HeldFolder::named(Error error) const {
  for (auto at = error.message.find(reach_); at != std::string::npos;
       at = error.message.find(reach_, at + path_.size())) {
    error.message.replace(at, reach_.size(), path_);
  }
  return error;
}

}  // namespace gleaner

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <mutex>

#include "common/os/files.hpp"

namespace gleaner::os {
namespace {

constexpr mode_t kFileMode = 0644;

constexpr int kBadDataStatus = 3;

struct Mapped {
  std::atomic<const char*> begin{nullptr};
  std::size_t bytes = 0;
  int file = -1;
  std::uint64_t stamp = 0;
  std::array<char, 1024> path{};  // shortened if it is longer
};

// Read by a signal's handler without a lock. Files beyond these are mapped all the same.
std::array<Mapped, 32> mapped_files;
std::mutex writing;
std::array<struct sigaction, 2> earlier;  // of SIGBUS, SIGSEGV

std::uint64_t stamp_of(int file) {
  struct stat facts {};

  if (::fstat(file, &facts) != 0) return 0;
  const auto ns = [](const timespec& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(time.tv_nsec);
  };
  return ns(facts.st_mtim) * 31 + ns(facts.st_ctim) + static_cast<std::uint64_t>(facts.st_size);
}

void handle_fault(int number, siginfo_t* info, void*) {
  const char* const at = static_cast<const char*>(info->si_addr);
  for (const Mapped& one : mapped_files) {
    const char* const begin = one.begin.load(std::memory_order_acquire);
    if (begin == nullptr) continue;
    const bool is_here = number == SIGBUS && at >= begin && at < begin + one.bytes;
    if (!is_here && stamp_of(one.file) == one.stamp) continue;
    const std::string_view path(one.path.data());
    for (const std::string_view part :
         {std::string_view("gleaner: "), path, kChangedWhileRead, std::string_view("\n")}) {
      (void)!::write(STDERR_FILENO, part.data(), part.size());
    }
    ::_exit(kBadDataStatus);
  }
  ::sigaction(number, &earlier[number == SIGBUS ? 0 : 1], nullptr);  // comes again at once
}

void watch(const FileView& view, const std::string& path) {
  const std::lock_guard lock(writing);
  static const bool is_first = [] {
    struct sigaction action {};

    action.sa_sigaction = &handle_fault;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGBUS, &action, &earlier[0]);
    ::sigaction(SIGSEGV, &action, &earlier[1]);
    return true;
  }();
  static_cast<void>(is_first);
  for (Mapped& one : mapped_files) {
    if (one.begin.load() != nullptr) continue;
    one.bytes = view.bytes;
    one.file = view.file;
    one.stamp = stamp_of(view.file);
    one.path.fill('\0');
    path.copy(one.path.data(), one.path.size() - 1);
    one.begin.store(static_cast<const char*>(view.begin), std::memory_order_release);
    return;
  }
}

}  // namespace

int make_unnamed_file(const std::string& folder, bool& is_impossible) {
  const int file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kFileMode);
  is_impossible = file < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL);
  return file;
}

int make_file(const std::string& path) {
  return ::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, kFileMode);
}

bool name_file(int file, const std::string& path) {
  const std::string self = fmt::format("/proc/self/fd/{}", file);
  return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

int make_memory_file() {
  return ::memfd_create("gleaner", MFD_CLOEXEC);
}

void close_file(int file) {
  ::close(file);
}

bool read_at(int file, std::uint64_t offset, void* bytes, std::size_t count) {
  char* target = static_cast<char*>(bytes);
  while (count > 0) {
    const ssize_t got = ::pread(file, target, count, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) errno = EIO;
    if (got <= 0) return false;
    target += got;
    count -= static_cast<std::size_t>(got);
    offset += static_cast<std::uint64_t>(got);
  }
  return true;
}

bool write_at(int file, std::uint64_t offset, const void* bytes, std::size_t count) {
  const char* source = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t written = ::pwrite(file, source, count, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    source += written;
    count -= static_cast<std::size_t>(written);
    offset += static_cast<std::uint64_t>(written);
  }
  return true;
}

bool cut_off(int file, std::uint64_t bytes) {
  return ::ftruncate(file, static_cast<off_t>(bytes)) == 0;
}

bool sync_file(int file) {
  return ::fsync(file) == 0;
}

void sync_folder(const std::string& folder) {
  const int opened = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return;
  ::fsync(opened);
  ::close(opened);
}

std::optional<std::uint64_t> file_bytes(int file) {
  struct stat facts {};

  if (::fstat(file, &facts) != 0 || !S_ISREG(facts.st_mode)) return std::nullopt;
  return static_cast<std::uint64_t>(facts.st_size);
}

void touch(int file) {
  ::futimens(file, nullptr);
}

bool replace_file(const std::string& source, const std::string& target) {
  return ::rename(source.c_str(), target.c_str()) == 0;
}

bool move_to_free_name(const std::string& source, const std::string& target) {
  if (::renameat2(AT_FDCWD, source.c_str(), AT_FDCWD, target.c_str(), RENAME_NOREPLACE) == 0) {
    return true;
  }
  if (errno == EEXIST || errno == ENOENT || errno == ENOSPC) return false;
  if (::link(source.c_str(), target.c_str()) == 0) return ::unlink(source.c_str()) == 0;
  if (errno == EEXIST) return false;
  // The file system has neither: an empty file takes the name, and the whole file replaces it. If
  // the process is killed in between, the empty file stays.
  const int taken = ::open(target.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, kFileMode);
  if (taken < 0) return false;
  ::close(taken);
  if (::rename(source.c_str(), target.c_str()) == 0) return true;
  const int error = errno;
  ::unlink(target.c_str());
  errno = error;
  return false;
}

bool delete_file(const std::string& path) {
  return ::unlink(path.c_str()) == 0;
}

int open_locked(const std::string& path, bool makes) {
  const int flags = O_RDWR | O_CLOEXEC | O_NONBLOCK | (makes ? O_CREAT : 0);
  // Tries again if the file was deleted, to free room, after it was opened and before it was
  // locked.
  for (int attempt = 0; attempt < 3; ++attempt) {
    const int file = ::open(path.c_str(), flags, kFileMode);
    if (file < 0) return -1;

    struct stat opened {};

    struct stat named {};

    const bool is_ours = ::flock(file, LOCK_EX | LOCK_NB) == 0 && ::fstat(file, &opened) == 0 &&
                         S_ISREG(opened.st_mode);
    if (is_ours && ::stat(path.c_str(), &named) == 0 && named.st_dev == opened.st_dev &&
        named.st_ino == opened.st_ino) {
      return file;
    }
    ::close(file);
    if (!is_ours) return -1;
  }
  return -1;
}

std::uint64_t file_bytes_max() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0) return ~std::uint64_t{0};
  return limit.rlim_cur;
}

void survive_large_files() {
  std::signal(SIGXFSZ, SIG_IGN);
}

bool is_disk_full(int error) {
  return error == ENOSPC || error == EDQUOT;
}

std::string room_remedy(int error, const std::string& path) {
  if (error == EDQUOT) {
    return "the quota of this user is used up (quota -s): delete files, or have it raised";
  }

  struct statvfs facts {};

  const std::string folder = path.substr(0, path.rfind('/') + 1);
  const bool is_told = ::statvfs(path.c_str(), &facts) == 0 ||
                       ::statvfs(folder.empty() ? "." : folder.c_str(), &facts) == 0;
  if (is_told && facts.f_files > 0 && facts.f_favail == 0) {
    return "there may be no more files, whatever their size (inodes: df -i): delete some, or "
           "choose another folder";
  }
  return "free some space or choose another folder";
}

// A mapped file cut short gives SIGBUS, foreign bytes lead anywhere: both end in a sentence.
std::optional<FileView> map_file(const std::string& path) {
  FileView view;
  view.file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (view.file < 0) return std::nullopt;
  view.bytes = static_cast<std::size_t>(file_bytes(view.file).value_or(0));
  void* mapped = MAP_FAILED;
  if (view.bytes > 0) mapped = ::mmap(nullptr, view.bytes, PROT_READ, MAP_SHARED, view.file, 0);
  if (mapped == MAP_FAILED) {
    const int error = errno;
    ::close(view.file);
    errno = error;
    view.file = -1;
    return view;
  }
  view.begin = mapped;
  watch(view, path);
  return view;
}

void unmap_file(FileView view) {
  if (view.begin == nullptr) return;
  {
    const std::lock_guard lock(writing);
    for (Mapped& one : mapped_files) {
      if (one.begin.load() == view.begin) one.begin.store(nullptr);
    }
  }
  ::munmap(const_cast<void*>(view.begin), view.bytes);
  ::close(view.file);
}

std::uint64_t file_stamp(const FileView& view) {
  return stamp_of(view.file);
}

void expect_random_visits(FileView view) {
  ::madvise(const_cast<void*>(view.begin), view.bytes, MADV_RANDOM);
}

}  // namespace gleaner::os

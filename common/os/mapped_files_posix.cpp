// A mapped file cut short gives SIGBUS, foreign bytes lead anywhere: both end in a sentence.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <mutex>

#include "common/os/files.hpp"

namespace gleaner::os {
namespace {

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

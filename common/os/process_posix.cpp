#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sched.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdlib>
#include <cwchar>

#include "common/os/process.hpp"

// Leaves out source locations, which do not help the reader.
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

namespace gleaner::os {
namespace {

std::string environment(const char* name) {
  // Documented to be called before threads start.
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? std::string() : std::string(value);
}

// Without this socket, which a container may hide, libsystemd would silently drop all entries.
constexpr const char* kSocket = "/run/systemd/journal/socket";

bool leads_to_journal(std::FILE* stream) {
  const char* named = std::getenv("JOURNAL_STREAM");  // NOLINT(concurrency-mt-unsafe): one thread

  struct stat file {};

  return named != nullptr && fstat(fileno(stream), &file) == 0 &&
         names_file(named, file.st_dev, file.st_ino);
}

}  // namespace

std::uint64_t process_id() {
  return static_cast<std::uint64_t>(getpid());
}

double processor_seconds() {
  return static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC);
}

bool is_administrator() {
  return geteuid() == 0;
}

std::uint32_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    return std::max(1u, static_cast<std::uint32_t>(CPU_COUNT(&set)));
  }
  // The set cannot name all processors: count them instead.
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online < 1 ? 1u : static_cast<std::uint32_t>(online);
}

std::uint64_t machine_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return 0;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes);
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

bool random_bytes(std::span<std::uint8_t> bytes) {
  return getentropy(bytes.data(), bytes.size()) == 0;
}

std::int64_t monotonic_us() {
  // Unlike CLOCK_MONOTONIC, this clock counts while the machine sleeps, as peers' clocks do.
  std::timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1'000;
}

bool local_time(std::time_t seconds, std::tm& local) {
  return localtime_r(&seconds, &local) != nullptr;
}

std::uint64_t raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  rlimit raised = limit;
  raised.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
}

void survive_lost_readers() {
  std::signal(SIGPIPE, SIG_IGN);
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    // Open takes the lowest free number.
    if (fcntl(stream, F_GETFD) < 0) (void)!open("/dev/null", O_RDWR);
  }
}

bool ignores_hangup() {
  struct sigaction action {};

  return sigaction(SIGHUP, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

bool run_program(const std::vector<std::string>& command) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_t child = 0;
  if (posix_spawnp(&child, words[0], nullptr, nullptr, words.data(), environ) != 0) return false;
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return false;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void prefer_large_pages(void* begin, std::size_t bytes) {
  // If the advice is refused, memory still works.
  (void)::madvise(begin, bytes, MADV_HUGEPAGE);
}

void give_memory_back() {
  (void)malloc_trim(0);
}

bool is_terminal(std::FILE* stream) {
  return isatty(fileno(stream)) == 1;
}

unsigned terminal_columns(std::FILE* stream) {
  winsize size{};
  return ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

unsigned columns_of(char32_t character) {
  static const locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  const locale_t before = uselocale(utf8);
  const int columns = wcwidth(static_cast<wchar_t>(character));
  uselocale(before);
  return columns < 0 ? 1u : static_cast<unsigned>(columns);
}

std::string terminal_kind() {
  return environment("TERM");
}

std::string locale_name() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (std::string value = environment(name); !value.empty()) return value;
  }
  return "";
}

bool names_file(std::string_view journal_stream, std::uint64_t device, std::uint64_t inode) {
  return journal_stream == fmt::format("{}:{}", device, inode);
}

std::function<void(const std::vector<std::string>& fields)> journal_behind(std::FILE* stream) {
  if (!leads_to_journal(stream) || access(kSocket, W_OK) != 0) return {};
  void* const library = dlopen("libsystemd.so.0", RTLD_NOW);
  if (library == nullptr) return {};
  const auto send =
      reinterpret_cast<decltype(&sd_journal_sendv)>(dlsym(library, "sd_journal_sendv"));
  if (send == nullptr) return {};
  return [send](const std::vector<std::string>& fields) {
    std::vector<iovec> parts;
    for (const std::string& field : fields) {
      // The library only reads them.
      parts.push_back({const_cast<char*>(field.data()), field.size()});
    }
    (void)send(parts.data(), static_cast<int>(parts.size()));
  };
}

}  // namespace gleaner::os

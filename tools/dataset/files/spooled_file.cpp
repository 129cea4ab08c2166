#include "tools/dataset/files/spooled_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

namespace gleaner {
namespace {

// The path of an open descriptor on Linux, whether or not its file has a name.
std::string path_of(int fd) {
  return fmt::format("/proc/self/fd/{}", fd);
}

Error failure(const std::string& name, const char* what) {
  return {ErrorCode::kIo,
          fmt::format("{}: {}: {}", name, what, std::generic_category().message(errno))};
}

// A file that no folder names; -1 with errno.
int open_nameless() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  std::string path = (folder / "gleaner-XXXXXX").string();
  const int fd = ::mkostemp(path.data(), O_CLOEXEC);
  if (fd >= 0) ::unlink(path.c_str());
  return fd;
}

// Calls that a signal interrupts are made again.
template <typename Call>
ssize_t uninterrupted(Call call) {
  for (;;) {
    const ssize_t count = call();
    if (count >= 0 || errno != EINTR) return count;
  }
}

Result<void> copy(const std::string& name, int from, int to) {
  std::array<char, std::size_t{1} << 16> bytes;
  for (;;) {
    const ssize_t count = uninterrupted([&] { return ::read(from, bytes.data(), bytes.size()); });
    if (count < 0) return failure(name, "cannot be read");
    if (count == 0) return {};
    for (ssize_t done = 0; done < count;) {
      const ssize_t written = uninterrupted(
          [&] { return ::write(to, bytes.data() + done, static_cast<std::size_t>(count - done)); });
      if (written < 0) {
        return failure(name, "cannot be copied to a temporary file (TMPDIR says where)");
      }
      done += written;
    }
  }
}

}  // namespace

Result<SpooledFile> SpooledFile::of(const std::string& path) {
  const bool is_standard_input = path == "-";
  SpooledFile file(is_standard_input ? "standard input" : path,
                   is_standard_input ? path_of(STDIN_FILENO) : path);

  struct stat status {};

  const bool is_stream = ::stat(file.path_.c_str(), &status) == 0 && !S_ISREG(status.st_mode) &&
                         !S_ISDIR(status.st_mode);
  if (!is_stream) return file;
  const int from =
      is_standard_input ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (from < 0) return failure(file.name_, "cannot be opened");
  file.copy_ = open_nameless();
  Result<void> copied = file.copy_ < 0 ? failure(file.name_, "cannot be copied to a temporary file")
                                       : copy(file.name_, from, file.copy_);
  ::close(from);
  if (!copied) return copied.error();
  file.path_ = path_of(file.copy_);
  return file;
}

SpooledFile::SpooledFile(SpooledFile&& other) noexcept
    : name_(std::move(other.name_)),
      path_(std::move(other.path_)),
      copy_(std::exchange(other.copy_, -1)) {}

SpooledFile::~SpooledFile() {
  if (copy_ >= 0) ::close(copy_);
}

Result<std::unique_ptr<ByteSource>> SpooledFile::open() const {
  return open_file_source(path_, name_);
}

}  // namespace gleaner

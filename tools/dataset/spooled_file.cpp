#include "tools/dataset/spooled_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/os/files.hpp"

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

Result<void> copy(ByteSource& from, int to) {
  std::array<char, std::size_t{1} << 16> bytes;
  for (std::uint64_t done = 0;; done = from.position()) {
    const Result<std::size_t> count = from.read(bytes);
    if (!count) return count.error();
    if (*count == 0) return {};
    if (!os::write_at(to, done, bytes.data(), *count)) {
      return failure(from.name(), "cannot be copied to a temporary file (TMPDIR says where)");
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
  const std::unique_ptr<ByteSource> stream = open_stream_source(from, file.name_);
  file.copy_ = open_nameless();
  if (file.copy_ < 0) return failure(file.name_, "cannot be copied to a temporary file");
  if (auto copied = copy(*stream, file.copy_); !copied) return copied.error();
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

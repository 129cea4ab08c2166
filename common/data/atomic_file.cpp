#include "common/data/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace gleaner {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;
constexpr mode_t kFileMode = 0644;

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::string temporary_name(const std::string& path) {
  static std::atomic<unsigned> next{0};
  const std::string base = std::filesystem::path(path).filename().string();
  return fmt::format("{}/.{}.tmp-{}-{}", folder_of(path), base, ::getpid(), next++);
}

ErrorCode code_of(int error) {
  return error == ENOSPC || error == EDQUOT ? ErrorCode::kResources : ErrorCode::kIo;
}

}  // namespace

std::string explain_errno(int error) {
  std::string message = std::generic_category().message(error);
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return message + "; free some space or choose another folder";
    case ENOENT:
      return message + "; create the folder first";
    case EACCES:
    case EPERM:
    case EROFS:
      return message + "; choose a folder that you may write to";
    default:
      return message;
  }
}

AtomicFile::AtomicFile(std::string path, int fd, std::string temporary)
    : path_(std::move(path)), fd_(fd), temporary_(std::move(temporary)) {
  buffer_.reserve(kBufferBytes);
}

AtomicFile::~AtomicFile() {
  ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Error AtomicFile::failure(std::string_view what, int error) const {
  return {code_of(error), fmt::format("{}: {}: {}", path_, what, explain_errno(error))};
}

Result<std::unique_ptr<AtomicFile>> AtomicFile::create(const std::string& path, Naming naming) {
  std::string temporary;
  int fd = -1;
  bool is_named = naming == Naming::kTemporaryName;
  if (!is_named) {
    fd = ::open(folder_of(path).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kFileMode);
    is_named = fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL);
  }
  if (is_named) {
    temporary = temporary_name(path);
    fd = ::open(temporary.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, kFileMode);
  }
  if (fd < 0) {
    return Error{code_of(errno),
                 fmt::format("{}: cannot be created: {}", path, explain_errno(errno))};
  }
  return std::unique_ptr<AtomicFile>(new AtomicFile(path, fd, std::move(temporary)));
}

Result<void> AtomicFile::write_at(std::uint64_t offset, const char* bytes, std::size_t count) {
  while (count > 0) {
    const ssize_t written = ::pwrite(fd_, bytes, count, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failure("cannot be written", errno);
    bytes += written;
    count -= static_cast<std::size_t>(written);
    offset += static_cast<std::uint64_t>(written);
  }
  return {};
}

Result<void> AtomicFile::flush() {
  Result<void> written = write_at(flushed_, buffer_.data(), buffer_.size());
  if (!written) return written;
  flushed_ += buffer_.size();
  buffer_.clear();
  return {};
}

Result<void> AtomicFile::write(const void* bytes, std::size_t count) {
  const char* source = static_cast<const char*>(bytes);
  if (buffer_.size() + count > kBufferBytes) {
    Result<void> flushed = flush();
    if (!flushed) return flushed;
    if (count > kBufferBytes) {
      Result<void> written = write_at(flushed_, source, count);
      if (written) flushed_ += count;
      return written;
    }
  }
  buffer_.insert(buffer_.end(), source, source + count);
  return {};
}

Result<void> AtomicFile::rewrite(std::uint64_t offset, const void* bytes, std::size_t count) {
  GLEANER_CHECK(offset + count <= size());
  Result<void> flushed = flush();
  if (!flushed) return flushed;
  return write_at(offset, static_cast<const char*>(bytes), count);
}

Result<void> AtomicFile::read_back(std::uint64_t offset, void* bytes, std::size_t count) {
  GLEANER_CHECK(offset + count <= size());
  Result<void> flushed = flush();
  if (!flushed) return flushed;
  char* target = static_cast<char*>(bytes);
  while (count > 0) {
    const ssize_t got = ::pread(fd_, target, count, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return failure("cannot be read back", got < 0 ? errno : EIO);
    target += got;
    count -= static_cast<std::size_t>(got);
    offset += static_cast<std::uint64_t>(got);
  }
  return {};
}

Result<void> AtomicFile::give_temporary_name() {
  if (!temporary_.empty()) return {};
  const std::string name = temporary_name(path_);
  const std::string self = fmt::format("/proc/self/fd/{}", fd_);
  if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0) {
    return failure("cannot be put in place", errno);
  }
  temporary_ = name;
  return {};
}

Result<void> AtomicFile::commit(Existing existing) {
  Result<void> flushed = flush();
  if (!flushed) return flushed;
  if (::fsync(fd_) != 0) return failure("cannot be made durable", errno);
  Result<void> named = give_temporary_name();
  if (!named) return named;
  if (existing == Existing::kReplace) {
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
      return failure("cannot be put in place", errno);
    }
    temporary_.clear();
  } else if (::link(temporary_.c_str(), path_.c_str()) != 0) {
    // The temporary name goes with the destructor, on success as on failure.
    return failure("cannot be put in place", errno);
  }
  const int folder = ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
  return {};
}

}  // namespace gleaner

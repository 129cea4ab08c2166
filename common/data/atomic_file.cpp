#include "common/data/atomic_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/os/files.hpp"
#include "common/os/process.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::string temporary_name(const std::string& path) {
  static std::atomic<unsigned> next{0};
  const std::string base = std::filesystem::path(path).filename().string();
  return fmt::format("{}/.{}.tmp-{}-{}", folder_of(path), base, os::process_id(), next++);
}

ErrorCode code_of(int error) {
  return os::is_disk_full(error) ? ErrorCode::kResources : ErrorCode::kIo;
}

}  // namespace

std::string explain_errno(int error, const std::string& path) {
  std::string message = std::generic_category().message(error);
  if (os::is_disk_full(error)) return message + "; " + os::room_remedy(error, path);
  switch (error) {
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
  os::close_file(fd_);
  if (!temporary_.empty()) os::delete_file(temporary_);
}

Error AtomicFile::failure(std::string_view what, int error) const {
  return {code_of(error), fmt::format("{}: {}: {}", path_, what, explain_errno(error, path_))};
}

Result<std::unique_ptr<AtomicFile>> AtomicFile::create(const std::string& path, Naming naming) {
  std::string temporary;
  int fd = -1;
  bool is_named = naming == Naming::kTemporaryName;
  if (!is_named) {
    fd = os::make_unnamed_file(folder_of(path), is_named);
  }
  if (is_named) {
    temporary = temporary_name(path);
    fd = os::make_file(temporary);
  }
  if (fd < 0) {
    return Error{code_of(errno),
                 fmt::format("{}: cannot be created: {}", path, explain_errno(errno, path))};
  }
  return std::unique_ptr<AtomicFile>(new AtomicFile(path, fd, std::move(temporary)));
}

Result<void> AtomicFile::write_at(std::uint64_t offset, const char* bytes, std::size_t count) {
  if (!os::write_at(fd_, offset, bytes, count)) return failure("cannot be written", errno);
  return {};
}

Result<void> AtomicFile::flush() {
  if (auto written = write_at(flushed_, buffer_.data(), buffer_.size()); !written) return written;
  flushed_ += buffer_.size();
  buffer_.clear();
  return {};
}

Result<void> AtomicFile::write(const void* bytes, std::size_t count) {
  const char* source = static_cast<const char*>(bytes);
  if (buffer_.size() + count > kBufferBytes) {
    if (auto flushed = flush(); !flushed) return flushed;
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
  if (auto flushed = flush(); !flushed) return flushed;
  return write_at(offset, static_cast<const char*>(bytes), count);
}

Result<void> AtomicFile::read_back(std::uint64_t offset, void* bytes, std::size_t count) {
  GLEANER_CHECK(offset + count <= size());
  if (auto flushed = flush(); !flushed) return flushed;
  if (!os::read_at(fd_, offset, bytes, count)) return failure("cannot be read back", errno);
  return {};
}

Result<void> AtomicFile::give_temporary_name() {
  if (!temporary_.empty()) return {};
  const std::string name = temporary_name(path_);
  if (os::name_file(fd_, name)) {
    temporary_ = name;
    return {};
  }
  // Without hard links, or without /proc, a copy takes the name.
  const int copy = os::make_file(name);
  if (copy < 0) return failure("cannot be put in place", errno);
  temporary_ = name;
  const int unnamed = std::exchange(fd_, copy);
  buffer_.resize(kBufferBytes);
  bool is_copied = true;
  for (std::uint64_t at = 0; at < flushed_ && is_copied; at += kBufferBytes) {
    const std::size_t bytes = std::min<std::uint64_t>(kBufferBytes, flushed_ - at);
    is_copied = os::read_at(unnamed, at, buffer_.data(), bytes) &&
                os::write_at(fd_, at, buffer_.data(), bytes);
  }
  is_copied = is_copied && os::sync_file(fd_);
  const int error = errno;
  os::close_file(unnamed);
  return is_copied ? Result<void>() : failure("cannot be put in place", error);
}

Result<void> AtomicFile::commit(Existing existing) {
  if (auto flushed = flush(); !flushed) return flushed;
  if (!os::sync_file(fd_)) return failure("cannot be made durable", errno);
  if (auto named = give_temporary_name(); !named) return named;
  const auto move = existing == Existing::kReplace ? os::replace_file : os::move_to_free_name;
  if (!move(temporary_, path_)) return failure("cannot be put in place", errno);
  temporary_.clear();
  os::sync_folder(folder_of(path_));
  return {};
}

}  // namespace gleaner

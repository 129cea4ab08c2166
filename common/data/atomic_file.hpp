// A file that appears at its path completely or not at all: written without a name (or under a
// temporary name, if the file system requires one), synced, then renamed. One owner; not
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace gleaner {

class AtomicFile {
 public:
  // A file without a name disappears even with a killed process; not every file system supports it.
  enum class Naming { kUnnamedIfPossible, kTemporaryName };

  // Creates the file in the folder of `path`. Errors name `path`.
  static Result<std::unique_ptr<AtomicFile>> create(const std::string& path,
                                                    Naming naming = Naming::kUnnamedIfPossible);
  // Removes an uncommitted file.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Appends; buffered.
  Result<void> write(const void* bytes, std::size_t count);
  // Overwrites bytes written before, at `offset`.
  Result<void> rewrite(std::uint64_t offset, const void* bytes, std::size_t count);
  // Reads back bytes written before; `offset + count` must not exceed size().
  Result<void> read_back(std::uint64_t offset, void* bytes, std::size_t count);

  [[nodiscard]] std::uint64_t size() const { return flushed_ + buffer_.size(); }

  [[nodiscard]] const std::string& path() const { return path_; }

  enum class Existing { kReplace, kRefuse };
  // Makes the content durable and visible at `path`. No other call may follow.
  Result<void> commit(Existing existing);

 private:
  AtomicFile(std::string path, int fd, std::string temporary);

  Result<void> flush();
  Result<void> write_at(std::uint64_t offset, const char* bytes, std::size_t count);
  Result<void> give_temporary_name();
  [[nodiscard]] Error failure(std::string_view what, int error) const;

  std::string path_;
  int fd_;
  std::string temporary_;  // empty while the file has no name
  std::uint64_t flushed_ = 0;
  std::vector<char> buffer_;
};

// "no such folder", "no space left" and the like of a file at `path`, with the remedy if known.
std::string explain_errno(int error, const std::string& path);

}  // namespace gleaner

// A file, or a copy of standard input, a pipe or a FIFO in a temporary file, which the object
// removes.
#pragma once

#include <memory>
#include <string>

#include "common/data/byte_source.hpp"
#include "common/result.hpp"

namespace gleaner {

class SpooledFile {
 public:
  // "-" is standard input. Reads a stream to its end. kIo when there is no room for the copy.
  static Result<SpooledFile> of(const std::string& path);

  SpooledFile(SpooledFile&& other) noexcept;
  SpooledFile& operator=(SpooledFile&&) = delete;
  ~SpooledFile();

  // From the beginning, decompressed.
  [[nodiscard]] Result<std::unique_ptr<ByteSource>> open() const;

  // For messages.
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  SpooledFile(std::string name, std::string path)
      : name_(std::move(name)), path_(std::move(path)) {}

  std::string name_;
  std::string path_;
  int copy_ = -1;  // a file without a name
};

}  // namespace gleaner

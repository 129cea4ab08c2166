// A stream of bytes out of a file or out of memory, decompressed when its content says that it is
// gzip or zstd; the file's name plays no part. Several gzip members or zstd frames in a row read as
// one stream. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/result.hpp"

namespace gleaner {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Fills the front of `target` and returns how many bytes; 0 only at the end. Truncated or damaged
  // compressed input is an error that names the file.
  virtual Result<std::size_t> read(std::span<char> target) = 0;

  // The file as messages name it.
  [[nodiscard]] virtual const std::string& name() const = 0;
  // How far reading has come, in bytes as stored (compressed); and of how many.
  [[nodiscard]] virtual std::uint64_t position() const = 0;
  [[nodiscard]] virtual std::uint64_t total() const = 0;
};

// Refuses folders and what cannot be read twice (pipes): packing and splitting take several passes.
Result<std::unique_ptr<ByteSource>> open_file_source(const std::string& path);
// Messages call the file `name`.
Result<std::unique_ptr<ByteSource>> open_file_source(const std::string& path, std::string name);

// `bytes` must outlive the source.
Result<std::unique_ptr<ByteSource>> open_memory_source(std::string name, std::string_view bytes);

}  // namespace gleaner

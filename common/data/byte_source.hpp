// A stream of bytes out of a file, decompressed when its content says that it is gzip or zstd; the
// file's name plays no part. Several gzip members or zstd frames in a row read as
// one stream. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

// The bytes of an open descriptor as they come, from now on this source's to close. `before_wait`
// runs each time there is nothing to read yet; its failure ends the reading.
std::unique_ptr<ByteSource> open_stream_source(int descriptor, std::string name,
                                               std::function<Result<void>()> before_wait = {});

// Cuts a byte source into lines. Lines end with LF or CRLF; the last one may end with the file.

// A longer line is refused: no point of a data set needs it, and a file without line ends (not text
// at all) must not be read into memory whole.
inline constexpr std::size_t kLineBytesMax = std::size_t{64} << 20;

class LineReader {
 public:
  explicit LineReader(std::unique_ptr<ByteSource> source);

  // Puts the next line, without its end, into `line`, valid until the next call. False at the end.
  Result<bool> next(std::string_view& line);

  // Number of the line returned last, from 1.
  [[nodiscard]] std::uint64_t line_number() const { return line_number_; }

  [[nodiscard]] const ByteSource& source() const { return *source_; }

 private:
  Result<void> fill();

  std::unique_ptr<ByteSource> source_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t line_number_ = 0;
  bool is_ended_ = false;
};

}  // namespace gleaner

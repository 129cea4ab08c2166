// A stream of bytes from a file, decompressed if its content (not its name) is gzip or zstd.
// Consecutive gzip members or zstd frames read as one stream. Not thread-safe.
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

  // Fills the front of `target` and returns the number of bytes; 0 only at the end. Truncated or
  // damaged compressed input is an error that names the file.
  virtual Result<std::size_t> read(std::span<char> target) = 0;

  // The file's name in messages.
  [[nodiscard]] virtual const std::string& name() const = 0;
  // Bytes read so far and in total, as stored (compressed).
  [[nodiscard]] virtual std::uint64_t position() const = 0;
  [[nodiscard]] virtual std::uint64_t total() const = 0;
};

// Refuses folders, and pipes, which cannot be read twice: packing and splitting take several
// passes.
Result<std::unique_ptr<ByteSource>> open_file_source(const std::string& path);
// Messages use `name` for the file.
Result<std::unique_ptr<ByteSource>> open_file_source(const std::string& path, std::string name);

// The bytes of an open descriptor, which the source will close. `before_wait` runs each time there
// is nothing to read yet; its failure ends the reading.
std::unique_ptr<ByteSource> open_stream_source(int descriptor, std::string name,
                                               std::function<Result<void>()> before_wait = {});

// A longer line is refused: no example needs it, and a file without line ends, which is no text,
// must not be read into memory completely.
inline constexpr std::size_t kLineBytesMax = std::size_t{64} << 20;

// Cuts a byte source into lines, which end with LF or CRLF; the last line may end with the file.
class LineReader {
 public:
  explicit LineReader(std::unique_ptr<ByteSource> source);

  // Puts the next line without its end into `line`, valid until the next call. False at the end.
  Result<bool> next(std::string_view& line);

  // The number of the last returned line, from 1.
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

// Converts texts of any encoding to UTF-8.

// The text of `source` as UTF-8 without a byte order mark. `encoding` is a name that iconv knows.
// If it is empty, a byte order mark or zero bytes identify UTF-16 and UTF-32; other text is UTF-8.
// kInvalidArgument for an unknown name. Reading fails with "FILE:LINE:COLUMN: expected ..." at
// bytes that are invalid in the encoding.
Result<std::unique_ptr<ByteSource>> as_utf8(std::unique_ptr<ByteSource> source,
                                            const std::string& encoding);

}  // namespace gleaner

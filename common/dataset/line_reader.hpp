// Cuts a byte source into lines. Lines end with LF or CRLF; the last one may end with the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "common/dataset/byte_source.hpp"
#include "common/result.hpp"

namespace gleaner {

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

// A byte source as a C++ stream that knows its place by line and column. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <streambuf>
#include <vector>

#include "common/data/byte_source.hpp"
#include "common/result.hpp"

namespace gleaner {

class ByteSourceBuffer final : public std::streambuf {
 public:
  explicit ByteSourceBuffer(std::unique_ptr<ByteSource> source);

  // The stream seems to end once this many bytes have been read from here.
  void limit(std::uint64_t bytes);

  struct Place {
    std::uint64_t line = 1;
    std::uint64_t column = 1;
  };

  // Where the next byte stands.
  [[nodiscard]] Place place() const;

  // Why the source could not be read; a stream knows only that it ended.
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

  [[nodiscard]] bool is_at_limit() const;

  [[nodiscard]] const ByteSource& source() const { return *source_; }

 private:
  int_type underflow() override;

  [[nodiscard]] std::uint64_t consumed() const;

  std::unique_ptr<ByteSource> source_;
  std::vector<char> buffer_;
  Place begin_;                     // of the buffer
  std::uint64_t bytes_before_ = 0;  // the buffer
  std::uint64_t limit_ = UINT64_MAX;
  std::optional<Error> error_;
};

}  // namespace gleaner

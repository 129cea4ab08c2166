#include "common/dataset/line_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace gleaner {

LineReader::LineReader(std::unique_ptr<ByteSource> source)
    : source_(std::move(source)), buffer_(std::size_t{1} << 18) {}

// Makes room behind `end_` and reads once.
Result<void> LineReader::fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size()) {
    if (buffer_.size() >= kLineBytesMax) {
      return Error{
          ErrorCode::kInvalidData,
          fmt::format("{}:{}:1: expected a line of fewer than {} bytes; is this a text file?",
                      source_->name(), line_number_ + 1, kLineBytesMax)};
    }
    buffer_.resize(buffer_.size() * 2);
  }
  Result<std::size_t> count = source_->read(std::span(buffer_).subspan(end_));
  if (!count) return count.error();
  is_ended_ = *count == 0;
  end_ += *count;
  return {};
}

Result<bool> LineReader::next(std::string_view& line) {
  std::size_t searched = begin_;
  const char* newline = nullptr;
  for (;;) {
    newline =
        static_cast<const char*>(std::memchr(buffer_.data() + searched, '\n', end_ - searched));
    if (newline != nullptr || is_ended_) break;
    const std::size_t offset = end_ - begin_;
    Result<void> filled = fill();
    if (!filled) return filled.error();
    searched = begin_ + offset;
  }
  if (newline == nullptr && begin_ == end_) return false;
  const char* first = buffer_.data() + begin_;
  const char* last = newline != nullptr ? newline : buffer_.data() + end_;
  begin_ = newline != nullptr ? static_cast<std::size_t>(newline + 1 - buffer_.data()) : end_;
  if (last != first && last[-1] == '\r') --last;
  line = {first, static_cast<std::size_t>(last - first)};
  ++line_number_;
  return true;
}

}  // namespace gleaner

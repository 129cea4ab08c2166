#include "tools/dataset/records/byte_source_stream.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace gleaner {

ByteSourceBuffer::ByteSourceBuffer(std::unique_ptr<ByteSource> source)
    : source_(std::move(source)), buffer_(std::size_t{1} << 16) {
  setg(buffer_.data(), buffer_.data(), buffer_.data());
}

std::uint64_t ByteSourceBuffer::consumed() const {
  return bytes_before_ + static_cast<std::uint64_t>(gptr() - eback());
}

void ByteSourceBuffer::limit(std::uint64_t bytes) {
  limit_ = consumed() + bytes;
}

bool ByteSourceBuffer::is_at_limit() const {
  return consumed() >= limit_;
}

ByteSourceBuffer::Place ByteSourceBuffer::place() const {
  const std::string_view read(eback(), static_cast<std::size_t>(gptr() - eback()));
  const std::size_t line_end = read.rfind('\n');
  if (line_end == std::string_view::npos) return {begin_.line, begin_.column + read.size()};
  return {begin_.line + static_cast<std::uint64_t>(std::ranges::count(read, '\n')),
          read.size() - line_end};
}

std::streambuf::int_type ByteSourceBuffer::underflow() {
  if (error_ || is_at_limit()) return traits_type::eof();
  begin_ = place();
  bytes_before_ = consumed();
  setg(buffer_.data(), buffer_.data(), buffer_.data());
  Result<std::size_t> count = source_->read(buffer_);
  if (!count) {
    error_ = count.error();
    return traits_type::eof();
  }
  setg(buffer_.data(), buffer_.data(), buffer_.data() + *count);
  return *count == 0 ? traits_type::eof() : traits_type::to_int_type(buffer_.front());
}

}  // namespace gleaner

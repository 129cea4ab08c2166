// A stream whose text a test can read back, without a file.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace gleaner {

class CapturedStream {
 public:
  CapturedStream() : stream_(open_memstream(&data_, &size_)) {}

  ~CapturedStream() {
    std::fclose(stream_);
    std::free(data_);
  }

  CapturedStream(const CapturedStream&) = delete;
  CapturedStream& operator=(const CapturedStream&) = delete;

  [[nodiscard]] std::FILE* stream() const { return stream_; }

  [[nodiscard]] std::string text() const {
    std::fflush(stream_);
    return {data_, size_};
  }

 private:
  char* data_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* stream_;
};

}  // namespace gleaner

#include "common/data/byte_source.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace gleaner {
namespace {

constexpr std::size_t kInputBytes = std::size_t{1} << 18;

class FileSource final : public ByteSource {
 public:
  FileSource(std::string name, int fd, std::uint64_t total,
             std::function<Result<void>()> before_wait = {})
      : name_(std::move(name)), fd_(fd), total_(total), before_wait_(std::move(before_wait)) {}

  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  ~FileSource() override { ::close(fd_); }

  Result<std::size_t> read(std::span<char> target) override {
    pollfd waiting{fd_, POLLIN, 0};
    if (before_wait_ && ::poll(&waiting, 1, 0) == 0) {
      if (auto done = before_wait_(); !done) return done.error();
    }
    for (;;) {
      const ssize_t count = ::read(fd_, target.data(), target.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        return Error{ErrorCode::kIo,
                     fmt::format("{}: cannot be read at byte {}: {}", name_, position_,
                                 std::generic_category().message(errno))};
      }
      position_ += static_cast<std::uint64_t>(count);
      return static_cast<std::size_t>(count);
    }
  }

  [[nodiscard]] const std::string& name() const override { return name_; }

  [[nodiscard]] std::uint64_t position() const override { return position_; }

  [[nodiscard]] std::uint64_t total() const override { return total_; }

 private:
  std::string name_;
  int fd_;
  std::uint64_t total_;
  std::uint64_t position_ = 0;
  std::function<Result<void>()> before_wait_;
};

// A window of stored bytes, which the decoders consume from the front.
class Window {
 public:
  explicit Window(std::unique_ptr<ByteSource> inner)
      : inner_(std::move(inner)), buffer_(kInputBytes) {}

  // Reads until the window has `wanted` bytes or the input ends.
  Result<void> fill(std::size_t wanted) {
    if (view().size() >= wanted) return {};
    if (begin_ > 0) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    while (end_ < wanted && !is_ended_) {
      Result<std::size_t> count = inner_->read(std::span(buffer_).subspan(end_));
      if (!count) return count.error();
      is_ended_ = *count == 0;
      end_ += *count;
    }
    return {};
  }

  [[nodiscard]] std::string_view view() const { return {buffer_.data() + begin_, end_ - begin_}; }

  void consume(std::size_t count) { begin_ += count; }

  [[nodiscard]] const ByteSource& inner() const { return *inner_; }

 private:
  std::unique_ptr<ByteSource> inner_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool is_ended_ = false;
};

class WindowedSource : public ByteSource {
 public:
  explicit WindowedSource(Window window) : window_(std::move(window)) {}

  [[nodiscard]] const std::string& name() const override { return window_.inner().name(); }

  [[nodiscard]] std::uint64_t position() const override {
    return window_.inner().position() - window_.view().size();
  }

  [[nodiscard]] std::uint64_t total() const override { return window_.inner().total(); }

 protected:
  [[nodiscard]] Error damaged(std::string_view kind, std::string_view what) const {
    return {ErrorCode::kInvalidData,
            fmt::format("{}: damaged {} data near byte {}: {}; fetch or write the file again",
                        name(), kind, position(), what)};
  }

  Window window_;
};

class PlainSource final : public WindowedSource {
 public:
  using WindowedSource::WindowedSource;

  Result<std::size_t> read(std::span<char> target) override {
    if (auto filled = window_.fill(1); !filled) return filled.error();
    const std::string_view view = window_.view();
    const std::size_t count = std::min(view.size(), target.size());
    std::memcpy(target.data(), view.data(), count);
    window_.consume(count);
    return count;
  }
};

bool is_gzip(std::string_view bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

bool is_zstd(std::string_view bytes) {
  if (bytes.size() < 4) return false;
  std::array<unsigned char, 4> magic;
  std::memcpy(magic.data(), bytes.data(), 4);
  // A frame of data, or a skippable frame, which some writers put in front.
  return (magic[0] == 0x28 && magic[1] == 0xb5 && magic[2] == 0x2f && magic[3] == 0xfd) ||
         ((magic[0] & 0xf0) == 0x50 && magic[1] == 0x2a && magic[2] == 0x4d && magic[3] == 0x18);
}

class GzipSource final : public WindowedSource {
 public:
  explicit GzipSource(Window window) : WindowedSource(std::move(window)) {
    // 16 + 15: gzip wrapping with the largest window. Fails only without memory.
    is_ready_ = inflateInit2(&stream_, 16 + 15) == Z_OK;
  }

  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  ~GzipSource() override {
    if (is_ready_) inflateEnd(&stream_);
  }

  Result<std::size_t> read(std::span<char> target) override {
    if (!is_ready_) return Error{ErrorCode::kResources, name() + ": no memory to decompress it"};
    if (target.empty()) return std::size_t{0};
    for (;;) {
      if (auto filled = window_.fill(1); !filled) return filled.error();
      if (is_between_members_) {
        Result<bool> begun = begin_member();
        if (!begun) return begun.error();
        if (!*begun) return std::size_t{0};
      }
      Result<std::size_t> count = inflate_some(target);
      if (!count || *count > 0) return count;
    }
  }

 private:
  // Returns false at the end of the input.
  Result<bool> begin_member() {
    if (auto filled = window_.fill(2); !filled) return filled.error();
    if (window_.view().empty()) return false;
    if (!is_gzip(window_.view())) return damaged("gzip", "other bytes follow the last member");
    inflateReset(&stream_);
    is_between_members_ = false;
    return true;
  }

  Result<std::size_t> inflate_some(std::span<char> target) {
    const std::string_view input = window_.view();
    if (input.empty()) return damaged("gzip", "it ends in the middle");
    const std::size_t room = std::min(target.size(), std::size_t{1} << 30);
    // zlib's interface lacks const; it does not write to its input.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
    stream_.avail_in = static_cast<uInt>(input.size());
    stream_.next_out = reinterpret_cast<Bytef*>(target.data());
    stream_.avail_out = static_cast<uInt>(room);
    const int status = inflate(&stream_, Z_NO_FLUSH);
    window_.consume(input.size() - stream_.avail_in);
    if (status == Z_STREAM_END) {
      is_between_members_ = true;
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      return damaged("gzip", stream_.msg != nullptr ? stream_.msg : "it cannot be decompressed");
    }
    return room - stream_.avail_out;
  }

  z_stream stream_{};
  bool is_ready_ = false;
  bool is_between_members_ = true;
};

class ZstdSource final : public WindowedSource {
 public:
  explicit ZstdSource(Window window)
      : WindowedSource(std::move(window)), stream_(ZSTD_createDStream()) {}

  ZstdSource(const ZstdSource&) = delete;
  ZstdSource& operator=(const ZstdSource&) = delete;

  ~ZstdSource() override { ZSTD_freeDStream(stream_); }

  Result<std::size_t> read(std::span<char> target) override {
    if (stream_ == nullptr) {
      return Error{ErrorCode::kResources, name() + ": no memory to decompress it"};
    }
    if (target.empty()) return std::size_t{0};
    for (;;) {
      if (auto filled = window_.fill(1); !filled) return filled.error();
      const std::string_view view = window_.view();
      ZSTD_outBuffer output{target.data(), target.size(), 0};
      ZSTD_inBuffer input{view.data(), view.size(), 0};
      if (view.empty() && is_between_frames_) return std::size_t{0};
      const std::size_t status = ZSTD_decompressStream(stream_, &output, &input);
      if (ZSTD_isError(status) != 0) return damaged("zstd", ZSTD_getErrorName(status));
      window_.consume(input.pos);
      is_between_frames_ = status == 0;
      if (output.pos > 0) return output.pos;
      if (view.empty() && !is_between_frames_) return damaged("zstd", "it ends in the middle");
    }
  }

 private:
  ZSTD_DStream* stream_;
  bool is_between_frames_ = true;
};

// Forms that may contain texts but are not read here, by their first bytes.
struct OtherForm {
  std::string_view begin;
  const char* what;
  const char* remedy;
};

constexpr std::array<OtherForm, 6> kOtherForms = {
    {{{"\xfd"
       "7zXZ\0",
       6},
      "compressed by xz",
      "decompress it with 'xz -d'"},
     {"BZh9", "compressed by bzip2", "decompress it with 'bzip2 -d'"},
     {"\x04\x22\x4d\x18", "compressed by lz4", "decompress it with 'lz4 -d'"},
     {"PK\x03\x04", "a zip archive or a workbook of a spreadsheet",
      "unzip it, or save the sheet as CSV"},
     {"7z\xbc\xaf", "a 7z archive", "unpack it with '7z x'"},
     {"PAR1", "a Parquet file",
      "write it as CSV or JSON lines, or compress that by gzip or zstd"}}};

constexpr std::size_t kBeginBytes = 6;  // of the longest form

Result<std::unique_ptr<ByteSource>> decode(std::unique_ptr<ByteSource> stored) {
  Window window(std::move(stored));
  if (auto filled = window.fill(kBeginBytes); !filled) return filled.error();
  for (const OtherForm& form : kOtherForms) {
    if (!window.view().starts_with(form.begin)) continue;
    return Error{ErrorCode::kInvalidData,
                 fmt::format("{} is {}, which is not read here; {}", window.inner().name(),
                             form.what, form.remedy)};
  }
  const bool gzip = is_gzip(window.view());
  const bool zstd = is_zstd(window.view());
  std::unique_ptr<ByteSource> source;
  if (gzip) {
    source = std::make_unique<GzipSource>(std::move(window));
  } else if (zstd) {
    source = std::make_unique<ZstdSource>(std::move(window));
  } else {
    source = std::make_unique<PlainSource>(std::move(window));
  }
  return source;
}

}  // namespace

Result<std::unique_ptr<ByteSource>> open_file_source(const std::string& path) {
  return open_file_source(path, path);
}

Result<std::unique_ptr<ByteSource>> open_file_source(const std::string& path, std::string name) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const ErrorCode code = errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
    return Error{code, fmt::format("{}: cannot be opened: {}", name,
                                   std::generic_category().message(errno))};
  }

  struct stat status {};

  const bool is_known = ::fstat(fd, &status) == 0;
  auto file = std::make_unique<FileSource>(
      std::move(name), fd, is_known ? static_cast<std::uint64_t>(status.st_size) : 0);
  if (!is_known || !S_ISREG(status.st_mode)) {
    return Error{ErrorCode::kInvalidArgument,
                 file->name() +
                     ": is not a regular file; data sets are read more than once, so save a "
                     "stream to a file first"};
  }
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
  return decode(std::move(file));
}

std::unique_ptr<ByteSource> open_stream_source(int descriptor, std::string name,
                                               std::function<Result<void>()> before_wait) {
  return std::make_unique<FileSource>(std::move(name), descriptor, 0, std::move(before_wait));
}

LineReader::LineReader(std::unique_ptr<ByteSource> source)
    : source_(std::move(source)), buffer_(std::size_t{1} << 18) {}

// Makes room after `end_` and reads once.
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
    if (auto filled = fill(); !filled) return filled.error();
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

#include <fmt/format.h>
#include <iconv.h>
#include <unicode/ucsdet.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "common/data/byte_source.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 16;
constexpr const char* kUtf8 = "UTF-8";
constexpr std::string_view kMarkInUtf8 = "\xef\xbb\xbf";

// Detects the encoding by the byte order mark, or by the zeros of the first letter.
const char* encoding_of(std::string_view bytes) {
  using namespace std::string_view_literals;

  struct Start {
    std::string_view bytes;
    const char* encoding;
  };

  // UTF-32 begins like UTF-16, so it is compared first.
  constexpr std::array<Start, 4> kMarks = {{{"\xff\xfe\0\0"sv, "UTF-32LE"},
                                            {"\0\0\xfe\xff"sv, "UTF-32BE"},
                                            {"\xff\xfe"sv, "UTF-16LE"},
                                            {"\xfe\xff"sv, "UTF-16BE"}}};
  for (const Start& mark : kMarks) {
    if (bytes.starts_with(mark.bytes)) return mark.encoding;
  }
  if (bytes.size() < 2 || (bytes[0] == '\0') == (bytes[1] == '\0')) return kUtf8;
  return bytes[0] == '\0' ? "UTF-16BE" : "UTF-16LE";
}

// ICU's guess of the encoding; empty without a guess.
std::string likely_encoding(std::string_view bytes) {
  UErrorCode error = U_ZERO_ERROR;
  const std::unique_ptr<UCharsetDetector, decltype(&ucsdet_close)> detector(ucsdet_open(&error),
                                                                            &ucsdet_close);
  ucsdet_setText(detector.get(), bytes.data(), static_cast<std::int32_t>(bytes.size()), &error);
  const UCharsetMatch* const match = ucsdet_detect(detector.get(), &error);
  const char* const name = match == nullptr ? nullptr : ucsdet_getName(match, &error);
  return name == nullptr || U_FAILURE(error) != 0 ? "" : name;
}

class Utf8Source final : public ByteSource {
 public:
  explicit Utf8Source(std::unique_ptr<ByteSource> inner)
      : inner_(std::move(inner)), input_(kChunkBytes), output_(kChunkBytes) {}

  Utf8Source(const Utf8Source&) = delete;
  Utf8Source& operator=(const Utf8Source&) = delete;

  ~Utf8Source() override {
    if (is_open_) ::iconv_close(converter_);
  }

  Result<void> begin(const std::string& encoding) {
    if (Result<void> filled = fill(); !filled) return filled;
    encoding_ = encoding.empty() ? encoding_of({input_.data(), input_end_}) : encoding;
    converter_ = ::iconv_open(kUtf8, encoding_.c_str());
    // iconv_open returns -1 as a pointer.
    is_open_ = reinterpret_cast<std::intptr_t>(converter_) != -1;
    if (is_open_) return {};
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("'{}' is no encoding that this machine's iconv knows; 'iconv -l' "
                             "lists them",
                             encoding_)};
  }

  Result<std::size_t> read(std::span<char> target) override {
    while (begin_ == end_ && !target.empty()) {
      Result<bool> has_more = convert();
      if (!has_more) return has_more.error();
      if (!*has_more) return std::size_t{0};
    }
    const std::size_t count = std::min(target.size(), end_ - begin_);
    std::memcpy(target.data(), output_.data() + begin_, count);
    begin_ += count;
    return count;
  }

  [[nodiscard]] const std::string& name() const override { return inner_->name(); }

  [[nodiscard]] std::uint64_t position() const override { return inner_->position(); }

  [[nodiscard]] std::uint64_t total() const override { return inner_->total(); }

 private:
  // Reads once, after the rest of the input.
  Result<void> fill() {
    std::memmove(input_.data(), input_.data() + input_begin_, input_end_ - input_begin_);
    input_end_ -= std::exchange(input_begin_, 0);
    Result<std::size_t> count = inner_->read(std::span(input_).subspan(input_end_));
    if (!count) return count.error();
    is_ended_ = *count == 0;
    input_end_ += *count;
    return {};
  }

  // Fills the empty output with some text. False at the end.
  Result<bool> convert() {
    if (input_begin_ == input_end_) {
      if (Result<void> filled = fill(); !filled) return filled.error();
      if (is_ended_) return false;
    }
    char* from = input_.data() + input_begin_;
    std::size_t from_bytes = input_end_ - input_begin_;
    char* to = output_.data();
    std::size_t to_bytes = output_.size();
    const std::size_t status = ::iconv(converter_, &from, &from_bytes, &to, &to_bytes);
    const int problem = status == static_cast<std::size_t>(-1) ? errno : 0;
    input_begin_ = input_end_ - from_bytes;
    begin_ = 0;
    end_ = output_.size() - to_bytes;
    if (!is_begun_ && std::string_view(output_.data(), end_).starts_with(kMarkInUtf8)) {
      begin_ = kMarkInUtf8.size();
    }
    is_begun_ = is_begun_ || end_ > 0;
    const std::string_view made(output_.data() + begin_, end_ - begin_);
    count_places(made);
    // The text before the problem is returned first; the next call meets the problem again.
    if (problem == 0 || problem == E2BIG || !made.empty()) return true;
    if (problem == EINVAL) {
      if (Result<void> filled = fill(); !filled) return filled.error();
      if (!is_ended_) return true;
    }
    return refusal();
  }

  void count_places(std::string_view made) {
    line_ += static_cast<std::uint64_t>(std::ranges::count(made, '\n'));
    const std::size_t line_end = made.rfind('\n');
    column_ = line_end == std::string_view::npos ? column_ + made.size() : made.size() - line_end;
  }

  [[nodiscard]] Error refusal() const {
    const std::string_view rest(input_.data() + input_begin_, input_end_ - input_begin_);
    const std::string likely = likely_encoding(rest);
    const bool is_damaged = encoding_ != kUtf8 || likely.empty() || likely == kUtf8;
    return {ErrorCode::kInvalidData,
            fmt::format("{}:{}:{}: expected {}, found the byte 0x{:02x}; {}", name(), line_,
                        column_, encoding_, static_cast<unsigned char>(rest.front()),
                        is_damaged ? "name the text's encoding with --encoding"
                                   : "name the text's encoding, which may be " + likely +
                                         ": --encoding " + likely)};
  }

  std::unique_ptr<ByteSource> inner_;
  std::string encoding_;
  iconv_t converter_{};
  bool is_open_ = false;
  std::vector<char> input_;
  std::size_t input_begin_ = 0;
  std::size_t input_end_ = 0;
  bool is_ended_ = false;
  std::vector<char> output_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool is_begun_ = false;
  std::uint64_t line_ = 1;    // where the input goes on
  std::uint64_t column_ = 1;  // in bytes of UTF-8
};

}  // namespace

Result<std::unique_ptr<ByteSource>> as_utf8(std::unique_ptr<ByteSource> source,
                                            const std::string& encoding) {
  auto utf8 = std::make_unique<Utf8Source>(std::move(source));
  if (Result<void> begun = utf8->begin(encoding); !begun) return begun.error();
  return std::unique_ptr<ByteSource>(std::move(utf8));
}

}  // namespace gleaner

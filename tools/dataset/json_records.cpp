#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <istream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <streambuf>
#include <string_view>
#include <utility>
#include <vector>

#include "common/data/byte_source.hpp"
#include "common/result.hpp"
#include "common/settings/settings_value.hpp"
#include "tools/dataset/tag_forms.hpp"
#include "tools/dataset/text_records.hpp"

namespace gleaner {
namespace {

// A byte source as a C++ stream that knows its place by line and column. Not thread-safe.
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

// The field that `path` names: by its whole name, or by names with points between them; of each
// object where there is a list of objects on the way. Empty when there is none. No deeper than the
// path has points, however deep the value is.
std::vector<const nlohmann::json*> values_at(const nlohmann::json& value, std::string_view path) {
  std::vector<const nlohmann::json*> all;
  if (value.is_array()) {
    for (const nlohmann::json& item : value) {
      if (!item.is_object()) continue;
      for (const nlohmann::json* one : values_at(item, path)) all.push_back(one);
    }
    return all;
  }
  if (!value.is_object()) return all;
  if (const auto whole = value.find(path); whole != value.end()) return {&*whole};
  const std::size_t point = path.find('.');
  if (point == std::string_view::npos) return all;
  const auto first = value.find(path.substr(0, point));
  return first == value.end() ? all : values_at(*first, path.substr(point + 1));
}

class JsonRecords final : public TextRecords {
 public:
  JsonRecords(std::unique_ptr<ByteSource> source, const TextFields& fields)
      : buffer_(std::move(source)), stream_(&buffer_), fields_(fields) {}

  Result<bool> next(TextRecord& record) override {
    Result<bool> has_more = find_object();
    if (!has_more || !*has_more) return has_more;
    begin_ = buffer_.place();
    buffer_.limit(kLineBytesMax);
    nlohmann::json object;
    try {
      stream_ >> object;
    } catch (const nlohmann::json::parse_error&) {
      return not_an_object();
    }
    if (!object.is_object()) return refusal(begin_, "expected a JSON object, found another value");
    record = {};
    if (auto filled = fill(object, record); !filled) return filled.error();
    record.end();
    return true;
  }

  [[nodiscard]] const ByteSource& source() const override { return buffer_.source(); }

 private:
  using Place = ByteSourceBuffer::Place;
  enum class Use { kText, kTag, kName };

  [[nodiscard]] Error refusal(Place place, const std::string& what) const {
    return {ErrorCode::kInvalidData,
            fmt::format("{}:{}:{}: {}", source().name(), place.line, place.column, what)};
  }

  // The parser has read the byte that it could not use.
  [[nodiscard]] Error not_an_object() {
    if (buffer_.error()) return *buffer_.error();
    if (buffer_.is_at_limit()) {
      return refusal(begin_,
                     fmt::format("expected a JSON object of at most {} bytes", kLineBytesMax));
    }
    if (stream_.eof()) {
      return refusal(begin_,
                     "expected a JSON object, found an object that does not end before the file");
    }
    const int found = buffer_.sungetc();
    return refusal(
        buffer_.place(),
        found < ' ' ? std::string("expected a JSON object, found the end of the line")
                    : fmt::format("expected a JSON object, found '{}'", static_cast<char>(found)));
  }

  // Skips blanks and what stands between the objects of an array. False at the end.
  Result<bool> find_object() {
    buffer_.limit(kLineBytesMax);
    for (;;) {
      const int next = (stream_ >> std::ws).peek();
      if (buffer_.error()) return *buffer_.error();
      if (next == std::istream::traits_type::eof()) {
        if (!is_in_array_) return false;
        return refusal(buffer_.place(),
                       "expected ']' at the end of the array, found the file's end");
      }
      const bool is_between = is_in_array_ ? next == ',' || next == ']' : next == '[';
      if (!is_between) return true;
      stream_.get();
      if (next != ',') is_in_array_ = next == '[';
    }
  }

  Result<void> fill(const nlohmann::json& object, TextRecord& record) const {
    for (const std::string& key : fields_.text) {
      const std::vector<const nlohmann::json*> values = values_at(object, key);
      if (values.empty()) {
        std::vector<std::string> keys;
        for (const auto& [name, value] : object.items()) keys.push_back(name);
        return refusal(begin_, fmt::format("expected a field '{}', found {}{}", key,
                                           fmt::join(keys, ", "), did_you_mean(key, keys)));
      }
      for (const nlohmann::json* value : values) {
        if (auto added = add(key, *value, record, Use::kText); !added) return added;
      }
    }
    for (const auto& [key, use] :
         {std::pair(fields_.tags, Use::kTag), std::pair(fields_.name, Use::kName)}) {
      if (key.empty()) continue;
      const std::vector<const nlohmann::json*> values = values_at(object, key);
      for (const nlohmann::json* value : values) {
        if (auto added = add(key, *value, record, use, values.size() > 1); !added) return added;
      }
    }
    return {};
  }

  // A value, or a list of values. Null is nothing.
  Result<void> add(const std::string& key, const nlohmann::json& value, TextRecord& record, Use use,
                   bool is_item = false) const {
    if (value.is_null()) return {};
    if (value.is_array() && !is_item) {
      for (const nlohmann::json& item : value) {
        if (auto added = add(key, item, record, use, true); !added) return added;
      }
      return {};
    }
    if (value.is_structured()) return nested(key, value);
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (use == Use::kText) {
      record.add_text(text);
    } else if (use == Use::kName) {
      record.set_name(text);
    } else if (is_item) {
      record.add_tag(text);  // whole, whatever is in it
    } else {
      record.uncut_tags = text;
    }
    return {};
  }

  [[nodiscard]] Error nested(const std::string& key, const nlohmann::json& value) const {
    if (!value.is_object() || value.empty()) {
      return refusal(begin_,
                     fmt::format("expected text or a list of texts in '{}', found something "
                                 "nested deeper",
                                 key));
    }
    std::vector<std::string> keys;
    for (const auto& [name, inner] : value.items()) keys.push_back(key + "." + name);
    return refusal(begin_, fmt::format("expected text or a list of texts in '{}', found an object; "
                                       "name one of its fields: {}",
                                       key, fmt::join(keys, ", ")));
  }

  ByteSourceBuffer buffer_;
  std::istream stream_;
  TextFields fields_;
  bool is_in_array_ = false;
  Place begin_;  // of the object
};

}  // namespace

Result<std::unique_ptr<TextRecords>> open_json_records(std::unique_ptr<ByteSource> source,
                                                       const TextFields& fields) {
  return std::unique_ptr<TextRecords>(std::make_unique<JsonRecords>(std::move(source), fields));
}

}  // namespace gleaner

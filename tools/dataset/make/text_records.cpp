#include "tools/dataset/make/text_records.hpp"

#include <csv.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/dataset/line_reader.hpp"
#include "common/dataset/point_parser.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kNameBytesMax = 100;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") + 1 - first);
}

// Text that fits a line of a file.
std::string one_line(std::string_view text) {
  std::string line(trimmed(text));
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return line;
}

void add_tag(std::string_view tag, TextRecord& record) {
  std::string name = one_line(tag);
  if (!name.empty()) record.tags.push_back(std::move(name));
}

void add_tags(std::string_view list, const std::string& separator, TextRecord& record) {
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(separator, at), list.size());
    add_tag(list.substr(at, end - at), record);
    at = end + separator.size();
  }
}

void add_text(std::string_view text, TextRecord& record) {
  if (!record.text.empty()) record.text += ' ';
  record.text += text;
}

// Without a name of its own, a point is known by how its text begins: whole characters of it.
void name_by_text(TextRecord& record) {
  if (!record.name.empty()) return;
  record.name = one_line(record.text.substr(0, kNameBytesMax));
  if (record.text.size() <= kNameBytesMax) return;
  const auto is_inner = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  std::size_t end = kNameBytesMax;
  while (end > 0 && is_inner(record.text[end])) --end;
  record.name = one_line(record.text.substr(0, end)) + " ...";
}

class CsvRecords final : public TextRecords {
 public:
  CsvRecords(std::unique_ptr<ByteSource> source, bool is_tsv, const TextFields& fields)
      : lines_(std::move(source)), fields_(fields) {
    is_ready_ = csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI) == 0;
    if (is_ready_ && is_tsv) csv_set_delim(&parser_, CSV_TAB);
  }

  ~CsvRecords() override {
    if (is_ready_) csv_free(&parser_);
  }

  CsvRecords(const CsvRecords&) = delete;
  CsvRecords& operator=(const CsvRecords&) = delete;

  Result<void> begin() {
    if (!is_ready_) return Error{ErrorCode::kResources, "no memory to read CSV"};
    Result<bool> has_row = read_row();
    if (!has_row) return has_row.error();
    if (!*has_row) return refusal(1, 1, "expected a row that names the columns, found none");
    columns_ = cells_.size();
    for (const std::string& name : fields_.text) {
      if (auto found = find_column(name, text_); !found) return found;
    }
    if (!fields_.tags.empty()) {
      if (auto found = find_column(fields_.tags, tags_); !found) return found;
    }
    return fields_.name.empty() ? Result<void>() : find_column(fields_.name, name_);
  }

  Result<bool> next(TextRecord& record) override {
    Result<bool> has_row = read_row();
    if (!has_row || !*has_row) return has_row;
    if (cells_.size() != columns_) {
      return refusal(first_line_, 1,
                     fmt::format("expected {} fields as the first row has, found {}", columns_,
                                 cells_.size()));
    }
    record = {};
    for (const std::size_t column : text_) add_text(cells_[column], record);
    for (const std::size_t column : tags_) add_tags(cells_[column], fields_.tag_separator, record);
    for (const std::size_t column : name_) record.name = one_line(cells_[column]);
    name_by_text(record);
    return true;
  }

  [[nodiscard]] const ByteSource& source() const override { return lines_.source(); }

 private:
  static void on_cell(void* bytes, std::size_t count, void* self) {
    static_cast<CsvRecords*>(self)->cells_.emplace_back(static_cast<const char*>(bytes), count);
  }

  static void on_row(int, void* self) { static_cast<CsvRecords*>(self)->has_row_ = true; }

  [[nodiscard]] Error refusal(std::uint64_t line, std::size_t column, std::string_view what) const {
    return {ErrorCode::kInvalidData,
            fmt::format("{}:{}:{}: {}", source().name(), line, column, what)};
  }

  Result<void> find_column(const std::string& name, std::vector<std::size_t>& columns) const {
    const auto place = std::find(cells_.begin(), cells_.end(), name);
    if (place == cells_.end()) {
      return refusal(
          1, 1, fmt::format("expected a column '{}', found {}", name, fmt::join(cells_, ", ")));
    }
    columns.push_back(static_cast<std::size_t>(place - cells_.begin()));
    return {};
  }

  // The parser is fed line by line: it knows nothing of places, and a row may take several.
  Result<bool> read_row() {
    cells_.clear();
    has_row_ = false;
    first_line_ = 0;
    std::size_t bytes = 0;
    while (!has_row_) {
      std::string_view line;
      Result<bool> has_line = lines_.next(line);
      if (!has_line) return has_line;
      if (!*has_line) {
        if (csv_fini(&parser_, &on_cell, &on_row, this) == 0) return has_row_;
        return refusal(first_line_, 1,
                       "expected a row, found a quoted field that does not end before the file");
      }
      if (lines_.line_number() == 1 && line.starts_with(kByteOrderMark)) {
        line.remove_prefix(kByteOrderMark.size());
      }
      if (first_line_ == 0 && !line.empty()) first_line_ = lines_.line_number();
      bytes += line.size() + 1;
      if (bytes > kLineBytesMax) {
        return refusal(
            first_line_, 1,
            fmt::format("expected a row of at most {} bytes; is a quote missing?", kLineBytesMax));
      }
      const std::size_t read =
          csv_parse(&parser_, line.data(), line.size(), &on_cell, &on_row, this);
      const bool is_read =
          read == line.size() && csv_parse(&parser_, "\n", 1, &on_cell, &on_row, this) == 1;
      if (!is_read) {
        return refusal(lines_.line_number(), read + 1,
                       fmt::format("expected a field, or one in quotes in which quotes are "
                                   "doubled, found {}",
                                   quote_found(line, read)));
      }
    }
    return true;
  }

  LineReader lines_;
  TextFields fields_;
  csv_parser parser_{};
  bool is_ready_ = false;
  std::size_t columns_ = 0;
  std::vector<std::size_t> text_, tags_, name_;  // columns
  std::vector<std::string> cells_;
  bool has_row_ = false;
  std::uint64_t first_line_ = 0;  // of the row
};

class JsonRecords final : public TextRecords {
 public:
  JsonRecords(std::unique_ptr<ByteSource> source, const TextFields& fields)
      : lines_(std::move(source)), fields_(fields) {}

  Result<bool> next(TextRecord& record) override {
    std::string_view line;
    do {
      Result<bool> has_line = lines_.next(line);
      if (!has_line || !*has_line) return has_line;
    } while (trimmed(line).empty());
    if (lines_.line_number() == 1 && line.starts_with(kByteOrderMark)) {
      line.remove_prefix(kByteOrderMark.size());
    }
    Json object;
    try {
      object = Json::parse(line.begin(), line.end());
    } catch (const Json::parse_error& error) {
      return refusal(std::max<std::size_t>(error.byte, 1),
                     "expected a JSON object, found " + quote_found(line, error.byte - 1));
    }
    if (!object.is_object()) return refusal(1, "expected a JSON object, found another value");
    record = {};
    for (const std::string& key : fields_.text) {
      if (!object.contains(key)) return refusal(1, fmt::format("expected a field '{}'", key));
      if (auto added = add_values(key, object[key], record, Use::kText); !added) {
        return added.error();
      }
    }
    for (const auto& [key, use] :
         {std::pair(fields_.tags, Use::kTag), std::pair(fields_.name, Use::kName)}) {
      if (key.empty() || !object.contains(key)) continue;
      if (auto added = add_values(key, object[key], record, use); !added) return added.error();
    }
    name_by_text(record);
    return true;
  }

  [[nodiscard]] const ByteSource& source() const override { return lines_.source(); }

 private:
  using Json = nlohmann::json;
  enum class Use { kText, kTag, kName };

  [[nodiscard]] Error refusal(std::size_t column, const std::string& what) const {
    return {ErrorCode::kInvalidData, fmt::format("{}:{}:{}: {}", lines_.source().name(),
                                                 lines_.line_number(), column, what)};
  }

  // A value, or a list of them. Null is nothing.
  Result<void> add_values(const std::string& key, const Json& value, TextRecord& record,
                          Use use) const {
    if (value.is_array()) {
      for (const Json& one : value) {
        if (one.is_array()) return nested(key);
        // A tag of a list is whole, whatever is in it.
        if (auto added = add_value(key, one, record, use, true); !added) return added;
      }
      return {};
    }
    return add_value(key, value, record, use, false);
  }

  [[nodiscard]] Error nested(const std::string& key) const {
    return refusal(1, fmt::format("expected text or a list of texts in '{}', found something "
                                  "nested deeper",
                                  key));
  }

  Result<void> add_value(const std::string& key, const Json& value, TextRecord& record, Use use,
                         bool is_whole) const {
    if (value.is_null()) return {};
    if (value.is_structured()) return nested(key);
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (use == Use::kText) {
      add_text(text, record);
    } else if (use == Use::kName) {
      record.name = one_line(text);
    } else if (is_whole) {
      add_tag(text, record);
    } else {
      add_tags(text, fields_.tag_separator, record);
    }
    return {};
  }

  LineReader lines_;
  TextFields fields_;
};

}  // namespace

RecordForm record_form_of_name(std::string path) {
  for (const std::string_view ending : {".gz", ".zst"}) {
    if (path.ends_with(ending)) path.resize(path.size() - ending.size());
  }
  if (path.ends_with(".tsv")) return RecordForm::kTsv;
  const bool is_json =
      path.ends_with(".jsonl") || path.ends_with(".ndjson") || path.ends_with(".json");
  return is_json ? RecordForm::kJsonLines : RecordForm::kCsv;
}

Result<std::unique_ptr<TextRecords>> TextRecords::open(std::unique_ptr<ByteSource> source,
                                                       RecordForm form, const TextFields& fields) {
  if (form == RecordForm::kJsonLines) {
    return std::unique_ptr<TextRecords>(std::make_unique<JsonRecords>(std::move(source), fields));
  }
  auto csv = std::make_unique<CsvRecords>(std::move(source), form == RecordForm::kTsv, fields);
  if (auto begun = csv->begin(); !begun) return begun.error();
  return std::unique_ptr<TextRecords>(std::move(csv));
}

}  // namespace gleaner

#include <csv.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/data/byte_source.hpp"
#include "common/data/point_parser.hpp"
#include "common/result.hpp"
#include "common/settings/settings_value.hpp"
#include "tools/dataset/tag_forms.hpp"
#include "tools/dataset/text_records.hpp"

namespace gleaner {
namespace {

// How fields stand in a row.
struct CsvDialect {
  char separator = ',';
  bool has_quotes = true;  // otherwise a row is a line, and a field is all between two separators
};

class CsvRows {
 public:
  explicit CsvRows(std::unique_ptr<ByteSource> source) : lines_(std::move(source)) {}

  ~CsvRows();
  CsvRows(const CsvRows&) = delete;
  CsvRows& operator=(const CsvRows&) = delete;

  // The next line, which the next row begins with. Nothing at the end.
  Result<std::optional<std::string>> peek();

  void skip_peeked() { peeked_.reset(); }

  void set_dialect(CsvDialect dialect);

  // Reads a row, which may take several lines; empty lines before it are no rows. False at the end.
  Result<bool> next(std::vector<std::string>& cells);

  // Where the last row begins.
  [[nodiscard]] std::uint64_t line() const { return first_line_; }

  [[nodiscard]] const CsvDialect& dialect() const { return dialect_; }

  // A quoted field that goes on for more than a few lines may lack its second quote.
  struct LongRows {
    std::uint64_t count = 0;
    std::uint64_t longest_line = 0;  // where it begins
    std::uint64_t longest_lines = 0;
  };

  [[nodiscard]] const LongRows& long_rows() const { return long_rows_; }

  [[nodiscard]] Error refusal(std::uint64_t line, std::size_t column, std::string_view what) const;

  [[nodiscard]] const ByteSource& source() const { return lines_.source(); }

 private:
  static void on_cell(void* bytes, std::size_t count, void* self);
  static void on_row(int end, void* self);

  Result<bool> next_line(std::string_view& line);
  Result<bool> next_plain();
  Result<bool> next_quoted();

  LineReader lines_;
  CsvDialect dialect_;
  std::optional<std::string> peeked_;
  std::string current_;  // the line that was peeked at
  csv_parser parser_{};
  bool is_parser_made_ = false;
  std::vector<std::string>* cells_ = nullptr;  // of the row being read
  bool has_row_ = false;
  std::uint64_t first_line_ = 0;
  LongRows long_rows_;
};

constexpr std::uint64_t kRowLinesFew = 5;

CsvRows::~CsvRows() {
  if (is_parser_made_) csv_free(&parser_);
}

Error CsvRows::refusal(std::uint64_t line, std::size_t column, std::string_view what) const {
  return {ErrorCode::kInvalidData,
          fmt::format("{}:{}:{}: {}", source().name(), line, column, what)};
}

Result<std::optional<std::string>> CsvRows::peek() {
  if (!peeked_) {
    std::string_view line;
    Result<bool> has_line = lines_.next(line);
    if (!has_line) return has_line.error();
    if (*has_line) peeked_ = line;
  }
  return peeked_;
}

void CsvRows::set_dialect(CsvDialect dialect) {
  dialect_ = dialect;
  is_parser_made_ = is_parser_made_ || csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI) == 0;
  csv_set_delim(&parser_, static_cast<unsigned char>(dialect.separator));
}

Result<bool> CsvRows::next_line(std::string_view& line) {
  if (!peeked_) return lines_.next(line);
  current_ = std::move(*peeked_);
  peeked_.reset();
  line = current_;
  return true;
}

Result<bool> CsvRows::next(std::vector<std::string>& cells) {
  cells.clear();
  cells_ = &cells;
  first_line_ = 0;
  return dialect_.has_quotes ? next_quoted() : next_plain();
}

Result<bool> CsvRows::next_plain() {
  std::string_view line;
  do {
    Result<bool> has_line = next_line(line);
    if (!has_line || !*has_line) return has_line;
  } while (line.empty());
  first_line_ = lines_.line_number();
  *cells_ = cut_at(line, {&dialect_.separator, 1});
  return true;
}

void CsvRows::on_cell(void* bytes, std::size_t count, void* self) {
  static_cast<CsvRows*>(self)->cells_->emplace_back(static_cast<const char*>(bytes), count);
}

void CsvRows::on_row(int, void* self) {
  static_cast<CsvRows*>(self)->has_row_ = true;
}

// The parser is fed line by line: it knows nothing of places, and a row may take several lines.
Result<bool> CsvRows::next_quoted() {
  has_row_ = false;
  std::size_t bytes = 0;
  while (!has_row_) {
    std::string_view line;
    Result<bool> has_line = next_line(line);
    if (!has_line) return has_line;
    if (!*has_line) {
      if (csv_fini(&parser_, &on_cell, &on_row, this) == 0) return has_row_;
      return refusal(first_line_, 1,
                     "expected a row, found a quoted field that does not end before the file; "
                     "--quote none takes quotes as text");
    }
    if (first_line_ == 0 && !line.empty()) first_line_ = lines_.line_number();
    bytes += line.size() + 1;
    if (bytes > kLineBytesMax) {
      return refusal(first_line_, 1,
                     fmt::format("expected a row of at most {} bytes; is a quote missing? --quote "
                                 "none takes quotes as text",
                                 kLineBytesMax));
    }
    const std::size_t read = csv_parse(&parser_, line.data(), line.size(), &on_cell, &on_row, this);
    const bool is_read =
        read == line.size() && csv_parse(&parser_, "\n", 1, &on_cell, &on_row, this) == 1;
    if (!is_read) {
      return refusal(lines_.line_number(), read + 1,
                     fmt::format("expected a field, or one in quotes in which quotes are doubled, "
                                 "found {}; --quote none takes quotes as text",
                                 quote_found(line, read)));
    }
  }
  const std::uint64_t lines = lines_.line_number() + 1 - first_line_;
  if (lines > kRowLinesFew) {
    ++long_rows_.count;
    if (lines > long_rows_.longest_lines) {
      long_rows_.longest_lines = lines;
      long_rows_.longest_line = first_line_;
    }
  }
  return true;
}

constexpr std::string_view kExcelSeparator = "sep=";

class CsvRecords final : public TextRecords {
 public:
  CsvRecords(std::unique_ptr<ByteSource> source, const RecordOptions& options,
             const TextFields& fields)
      : rows_(std::move(source)), options_(options), fields_(fields) {}

  Result<void> begin() {
    if (auto chosen = choose_dialect(); !chosen) return chosen;
    Result<bool> has_row = rows_.next(cells_);
    if (!has_row) return has_row.error();
    if (!*has_row) return rows_.refusal(1, 1, kNoNames);
    columns_ = cells_.size();
    for (const std::string& name : fields_.text) {
      if (auto found = find_column(name, text_); !found) return found;
    }
    for (const auto& [name, columns] :
         {std::pair(&fields_.tags, &tags_), std::pair(&fields_.name, &name_)}) {
      const bool is_there = std::ranges::find(cells_, *name) != cells_.end();
      if (name->empty() || (!options_.needs_all && !is_there)) continue;
      if (auto found = find_column(*name, *columns); !found) return found;
    }
    return {};
  }

  Result<bool> next(TextRecord& record) override {
    Result<bool> has_row = rows_.next(cells_);
    if (!has_row || !*has_row) return has_row;
    if (cells_.size() != columns_) {
      return rows_.refusal(
          rows_.line(), 1,
          fmt::format("expected {} fields as the first row has, found {}{}", columns_,
                      cells_.size(),
                      rows_.dialect().has_quotes ? ""
                                                 : "; if quotes hold fields together, give --quote "
                                                   "double"));
    }
    for (const std::string& cell : cells_) {
      if (cell.find('\0') == std::string::npos) continue;
      return rows_.refusal(rows_.line(), 1, "expected text, found a byte of zero: is it whole?");
    }
    record = {};
    for (const std::size_t column : text_) record.add_text(cells_[column]);
    for (const std::size_t column : tags_) record.uncut_tags = cells_[column];
    for (const std::size_t column : name_) record.set_name(cells_[column]);
    record.end();
    return true;
  }

  [[nodiscard]] std::string warning() const override {
    const CsvRows::LongRows& rows = rows_.long_rows();
    if (rows.count == 0) return {};
    return fmt::format(
        "{}:{}: a quoted field goes on for {} lines{}; if its second quote is "
        "missing, --quote none takes quotes as text",
        source().name(), rows.longest_line, rows.longest_lines,
        rows.count == 1 ? std::string() : fmt::format(", the longest of {}", rows.count));
  }

  [[nodiscard]] const ByteSource& source() const override { return rows_.source(); }

 private:
  static constexpr const char* kNoNames = "expected a row that names the columns, found none";

  Result<void> choose_dialect() {
    const bool is_tsv = options_.form == RecordForm::kTsv;
    Result<std::optional<std::string>> line = rows_.peek();
    if (!line) return line.error();
    if (!*line) return rows_.refusal(1, 1, kNoNames);
    const std::string first_row = **line;
    std::optional<char> separator = options_.separator;
    if ((*line)->starts_with(kExcelSeparator) && (*line)->size() == kExcelSeparator.size() + 1) {
      if (!separator) separator = (*line)->back();
      rows_.skip_peeked();
    } else if (!separator) {
      separator = recognised(**line, is_tsv ? '\t' : ',');
    }
    // Names in quotes show that quotes hold fields together here.
    const bool has_usual_quotes =
        (!is_tsv && *separator != '\t') ||
        std::ranges::all_of(cut_at(first_row, {&*separator, 1}), [](std::string_view name) {
          return name.size() > 1 && name.starts_with('"') && name.ends_with('"');
        });
    rows_.set_dialect({*separator, options_.has_quotes.value_or(has_usual_quotes)});
    return {};
  }

  // The separator that gives all columns, or else the most columns; `usual` among equals.
  [[nodiscard]] char recognised(std::string_view first_row, char usual) const {
    const auto merit = [&](char separator) {
      std::vector<std::string> names = cut_at(first_row, {&separator, 1});
      for (std::string& name : names) {
        name = trimmed(name);
        if (name.size() > 1 && name.front() == '"' && name.back() == '"') {
          name = name.substr(1, name.size() - 2);
        }
      }
      const auto is_there = [&](const std::string& name) {
        return name.empty() || std::ranges::find(names, name) != names.end();
      };
      const bool has_all = std::ranges::all_of(fields_.text, is_there) && is_there(fields_.tags) &&
                           is_there(fields_.name);
      return std::pair(has_all, names.size());
    };
    char best = usual;
    for (const char separator : {',', ';', '\t', '|'}) {
      if (merit(separator) > merit(best)) best = separator;
    }
    return merit(usual).first ? usual : best;
  }

  Result<void> find_column(const std::string& name, std::vector<std::size_t>& columns) const {
    const auto place = std::ranges::find(cells_, name);
    if (place == cells_.end()) {
      return rows_.refusal(rows_.line(), 1,
                           fmt::format("expected a column '{}', found {}{}", name,
                                       fmt::join(cells_, ", "), did_you_mean(name, cells_)));
    }
    const auto again = std::find(place + 1, cells_.end(), name);
    const auto number = [&](auto at) { return at - cells_.begin() + 1; };
    if (again != cells_.end()) {
      return rows_.refusal(rows_.line(), 1,
                           fmt::format("expected one column '{}', found fields {} and {} of that "
                                       "name; give them two names",
                                       name, number(place), number(again)));
    }
    columns.push_back(static_cast<std::size_t>(place - cells_.begin()));
    return {};
  }

  CsvRows rows_;
  RecordOptions options_;
  TextFields fields_;
  std::size_t columns_ = 0;
  std::vector<std::size_t> text_, tags_, name_;  // columns
  std::vector<std::string> cells_;
};

}  // namespace

Result<std::unique_ptr<TextRecords>> open_csv_records(std::unique_ptr<ByteSource> source,
                                                      const RecordOptions& options,
                                                      const TextFields& fields) {
  auto csv = std::make_unique<CsvRecords>(std::move(source), options, fields);
  if (auto begun = csv->begin(); !begun) return begun.error();
  return std::unique_ptr<TextRecords>(std::move(csv));
}

}  // namespace gleaner

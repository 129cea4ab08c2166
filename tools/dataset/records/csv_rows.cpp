#include "tools/dataset/records/csv_rows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/data/point_parser.hpp"

namespace gleaner {
namespace {

constexpr std::uint64_t kRowLinesFew = 5;

}  // namespace

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
  *cells_ = cut_line(line, dialect_.separator);
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

std::vector<std::string> cut_line(std::string_view line, char separator) {
  std::vector<std::string> cells;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find(separator, at), line.size());
    cells.emplace_back(line.substr(at, end - at));
    at = end + 1;
  }
  return cells;
}

}  // namespace gleaner

// Rows of CSV and TSV. Not thread-safe.
#pragma once

#include <csv.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/data/byte_source.hpp"
#include "common/result.hpp"

namespace gleaner {

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

// The fields of a line by itself.
std::vector<std::string> cut_line(std::string_view line, char separator);

}  // namespace gleaner

// The findings of a verb, as text for people, as JSON for programs, and the tables as CSV. Plain
// values; one thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/console/terminal.hpp"
#include "common/model/precision.hpp"
#include "common/result.hpp"

namespace gleaner {

using Json = nlohmann::ordered_json;

// The version of the envelope of every JSON document. Fields may be added without changing it.
inline constexpr int kJsonVersion = 1;

// A field of a CSV row: empty for null, in quotes where it must be.
std::string csv_field(const Json& value);

// A value for programs, and its text for people.
struct Cell {
  Json value;
  std::string text;
};

Cell cell_none();  // not measured: null, and a dash
Cell cell_text(std::string_view text);
// The text for people is cut to `width` columns.
Cell cell_fit(std::string_view text, std::size_t width, TextStyle style);
Cell cell_count(std::uint64_t count);
Cell cell_bytes(std::uint64_t bytes);
// With `digits` digits after the point; null unless finite.
Cell cell_number(double value, int digits);
// A fraction, shown in percent.
Cell cell_share(double share, int digits = 2);
// As above; a negative value means not measured.
Cell cell_measured(double value, int digits);
Cell cell_measured_share(double share);
// Seconds since 1970, shown as UTC; 0 means never.
Cell cell_time(std::int64_t wall_seconds);
Cell cell_duration(double seconds);

struct Column {
  const char* key;
  const char* title;
  bool is_left = false;       // words; numbers stand on the right
  bool is_for_people = true;  // programs get all columns
};

// A column for precision@k and propensity-scored precision@k at each depth, and its cells.
void add_precision_columns(std::vector<Column>& columns);
void add_precision_cells(std::vector<Cell>& row, const Precision& precision);

struct ReportTable {
  std::string key;
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  std::size_t people_rows_max = SIZE_MAX;  // in the text for people
};

// A JSON object per row, and these as lines.
Json table_json(const ReportTable& table);
std::string json_lines(const Json& rows);

class Report {
 public:
  // The next facts stand under `title`, and in JSON in the object `key`.
  void section(std::string key, std::string title);
  void fact(const char* key, const char* title, Cell cell);
  // The caller fills it; valid as long as the report.
  ReportTable& table(std::string key, std::vector<Column> columns);
  // Text for people alone.
  void text(std::string lines);

  [[nodiscard]] std::string for_people(TextStyle style) const;
  [[nodiscard]] Json for_programs() const;
  // The rows of all tables, each table under a line of its columns' keys.
  [[nodiscard]] std::string as_csv() const;

 private:
  struct Fact {
    const char* key;
    const char* title;
    Cell cell;
  };

  using Block = std::variant<Fact, ReportTable, std::string>;

  struct Section {
    std::string key;
    std::string title;
    std::deque<Block> blocks;  // a deque: elements keep their addresses
  };

  std::deque<Section> sections_;
};

enum class ReportForm : std::uint8_t { kPeople, kJson, kCsv };

constexpr ReportForm report_form(bool json, bool csv = false) {
  return json ? ReportForm::kJson : csv ? ReportForm::kCsv : ReportForm::kPeople;
}

// The whole document: `{"gleaner_json": 1, "verb": ..., "subject": ..., ...}` and a line end.
std::string json_document(std::string_view verb, std::string_view subject, const Json& body);

// Prints to stdout. The subject is the verb's argument, such as a store.
Result<void> print_report(const Report& report, ReportForm form, std::string_view verb,
                          std::string_view subject);

// For a verb that makes something: prints `text` for people, or the document.
Result<void> print_done(bool is_json, std::string_view verb, std::string_view subject,
                        const Json& body, const std::string& text);

// A bar of `share` of `width` columns.
std::string bar(double share, std::size_t width, TextStyle style);

// Prints `text` to stdout at once; kIo when it cannot be written, kReaderLost when its reader has
// gone.
Result<void> print_out(const std::string& text);

// A reader that has read enough is no failure.
inline bool is_reader_lost(const Result<void>& printed) {
  return !printed && printed.error().code == ErrorCode::kReaderLost;
}

// Prints a line to stderr if it can be written.
void print_error(const std::string& line);

}  // namespace gleaner

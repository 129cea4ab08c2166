#include "tools/cli/report.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <system_error>

#include "common/time.hpp"

namespace gleaner {

namespace {

constexpr std::size_t kTitleWidth = 18;

std::string padded(std::string_view text, std::size_t width, bool is_left) {
  const std::size_t taken = display_width(text);
  const std::string gap(taken < width ? width - taken : 0, ' ');
  return is_left ? std::string(text) + gap : gap + std::string(text);
}

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string table_text(const ReportTable& table, TextStyle style) {
  const std::size_t shown = std::min(table.rows.size(), table.people_rows_max);
  std::vector<std::size_t> widths;
  for (const Column& column : table.columns) widths.push_back(display_width(column.title));
  for (std::size_t r = 0; r < shown; ++r) {
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      widths[c] = std::max(widths[c], display_width(table.rows[r][c].text));
    }
  }
  std::string head;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (!table.columns[c].is_for_people) continue;
    head += "  " + padded(table.columns[c].title, widths[c], table.columns[c].is_left);
  }
  head.erase(head.find_last_not_of(' ') + 1);
  std::string text = coloured(head, Colour::kDim, style) + "\n";
  for (std::size_t r = 0; r < shown; ++r) {
    std::string line;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      if (!table.columns[c].is_for_people) continue;
      line += "  " + padded(table.rows[r][c].text, widths[c], table.columns[c].is_left);
    }
    text += without_trailing_blanks(std::move(line));
  }
  if (shown < table.rows.size()) {
    text += fmt::format("  and {} more: --json lists them\n", grouped(table.rows.size() - shown));
  }
  return text;
}

}  // namespace

std::string csv_field(const Json& value) {
  if (value.is_null()) return "";
  if (!value.is_string()) return value.dump();
  std::string text = value.get<std::string>();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  for (std::size_t at = text.find('"'); at != std::string::npos; at = text.find('"', at + 2)) {
    text.insert(at, "\"");
  }
  return '"' + text + '"';
}

Cell cell_none() {
  return {nullptr, "-"};
}

Cell cell_text(std::string_view text) {
  std::string harmless = printable(text);
  return {harmless, harmless};
}

Cell cell_fit(std::string_view text, std::size_t width, TextStyle style) {
  Cell cell = cell_text(text);
  cell.text = fit(cell.text, width, style);
  return cell;
}

Cell cell_count(std::uint64_t count) {
  return {count, grouped(count)};
}

Cell cell_bytes(std::uint64_t bytes) {
  return {bytes, bytes_shown(bytes)};
}

Cell cell_number(double value, int digits) {
  if (!std::isfinite(value)) return cell_none();
  return {value, fmt::format("{:.{}f}", value, digits)};
}

Cell cell_share(double share, int digits) {
  if (!std::isfinite(share)) return cell_none();
  return {share, fmt::format("{:.{}f} %", 100 * share, digits)};
}

Cell cell_measured(double value, int digits) {
  return value < 0 ? cell_none() : cell_number(value, digits);
}

Cell cell_measured_share(double share) {
  return share < 0 ? cell_none() : cell_share(share);
}

void add_precision_columns(std::vector<Column>& columns) {
  Precision none;
  visit_depths(none, [&](const char* name, const char* title, double) {
    columns.push_back({name, title});
  });
}

void add_precision_cells(std::vector<Cell>& row, const Precision& precision) {
  visit_depths(precision, [&](const char*, const char*, double value) {
    row.push_back(cell_measured_share(value));
  });
}

Cell cell_time(std::int64_t wall_seconds) {
  constexpr std::int64_t kLatest = 253'402'300'799;  // the year 9999
  if (wall_seconds <= 0 || wall_seconds > kLatest) return cell_none();
  return {wall_seconds,
          fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(static_cast<std::time_t>(wall_seconds)))};
}

Cell cell_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return cell_none();
  return {seconds, duration_words(static_cast<std::uint64_t>(std::llround(seconds)))};
}

Json table_json(const ReportTable& table) {
  Json rows = Json::array();
  for (const std::vector<Cell>& row : table.rows) {
    Json object = Json::object();
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      object[table.columns[c].key] = row[c].value;
    }
    rows.push_back(std::move(object));
  }
  return rows;
}

std::string json_lines(const Json& rows) {
  std::string text;
  for (const Json& row : rows) text += row.dump() + "\n";
  return text;
}

void Report::section(std::string key, std::string title) {
  sections_.push_back({std::move(key), std::move(title), {}});
}

void Report::fact(const char* key, const char* title, Cell cell) {
  if (sections_.empty()) section("", "");
  sections_.back().blocks.emplace_back(Fact{key, title, std::move(cell)});
}

ReportTable& Report::table(std::string key, std::vector<Column> columns) {
  if (sections_.empty()) section("", "");
  sections_.back().blocks.emplace_back(ReportTable{std::move(key), std::move(columns), {}});
  return std::get<ReportTable>(sections_.back().blocks.back());
}

void Report::text(std::string lines) {
  if (sections_.empty()) section("", "");
  sections_.back().blocks.emplace_back(std::move(lines));
}

std::string Report::for_people(TextStyle style) const {
  std::string text;
  for (const Section& section : sections_) {
    if (!text.empty()) text += "\n";
    if (!section.title.empty()) text += coloured(section.title, Colour::kBold, style) + "\n";
    for (const Block& block : section.blocks) {
      if (const Fact* fact = std::get_if<Fact>(&block)) {
        text += fmt::format("  {}  {}\n", padded(fact->title, kTitleWidth, true), fact->cell.text);
      } else if (const ReportTable* table = std::get_if<ReportTable>(&block)) {
        text += table_text(*table, style);
      } else {
        text += std::get<std::string>(block);
      }
    }
  }
  return text;
}

Json Report::for_programs() const {
  Json document = Json::object();
  for (const Section& section : sections_) {
    Json& object = section.key.empty() ? document : document[section.key];
    for (const Block& block : section.blocks) {
      if (const Fact* fact = std::get_if<Fact>(&block)) {
        object[fact->key] = fact->cell.value;
      } else if (const ReportTable* table = std::get_if<ReportTable>(&block)) {
        object[table->key] = table_json(*table);
      }
    }
  }
  return document;
}

std::string Report::as_csv() const {
  std::string text;
  for (const Section& section : sections_) {
    for (const Block& block : section.blocks) {
      const ReportTable* const table = std::get_if<ReportTable>(&block);
      if (table == nullptr) continue;
      std::string head;
      for (const Column& column : table->columns) {
        head += (head.empty() ? "" : ",") + std::string(column.key);
      }
      text += head + "\n";
      for (const std::vector<Cell>& row : table->rows) {
        std::string line;
        for (std::size_t c = 0; c < row.size(); ++c) {
          line += (c == 0 ? "" : ",") + csv_field(row[c].value);
        }
        text += line + "\n";
      }
    }
  }
  return text;
}

std::string json_document(std::string_view verb, std::string_view subject, const Json& body) {
  Json document = Json::object();
  document["gleaner_json"] = kJsonVersion;
  document["verb"] = verb;
  document["subject"] = subject;
  document.update(body);
  // Paths and names need not be UTF-8.
  return document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<void> print_report(const Report& report, ReportForm form, std::string_view verb,
                          std::string_view subject) {
  if (form == ReportForm::kJson) {
    return print_out(json_document(verb, subject, report.for_programs()));
  }
  if (form == ReportForm::kCsv) return print_out(report.as_csv());
  return print_out(report.for_people(terminal_facts(stdout).style));
}

Result<void> print_done(bool is_json, std::string_view verb, std::string_view subject,
                        const Json& body, const std::string& text) {
  return print_out(is_json ? json_document(verb, subject, body) : text);
}

std::string bar(double share, std::size_t width, TextStyle style) {
  const double wanted = std::clamp(share, 0.0, 1.0) * static_cast<double>(width);
  // Rounded up, so that whatever is there shows.
  const auto columns = static_cast<std::size_t>(std::ceil(wanted));
  std::string text;
  for (std::size_t i = 0; i < columns; ++i) text += style.utf8 ? "\u2588" : "#";
  return text;
}

Result<void> print_out(const std::string& text) {
  const std::size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written == text.size() && std::fflush(stdout) == 0) return {};
  if (errno == EPIPE) return Error{ErrorCode::kReaderLost, "nobody reads the output any more"};
  return Error{ErrorCode::kIo, fmt::format("the output cannot be written: {}",
                                           std::generic_category().message(errno))};
}

void print_error(const std::string& line) {
  std::fprintf(stderr, "%s\n", line.c_str());
  std::fflush(stderr);
}

}  // namespace gleaner

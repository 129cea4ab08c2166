#include "tools/dataset/records/csv_records.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "common/settings/settings_value.hpp"
#include "tools/dataset/records/csv_rows.hpp"

namespace gleaner {
namespace {

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
    if (!fields_.tags.empty()) {
      if (auto found = find_column(fields_.tags, tags_); !found) return found;
    }
    return fields_.name.empty() ? Result<void>() : find_column(fields_.name, name_);
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
    std::optional<char> separator = options_.separator;
    if ((*line)->starts_with(kExcelSeparator) && (*line)->size() == kExcelSeparator.size() + 1) {
      if (!separator) separator = (*line)->back();
      rows_.skip_peeked();
    } else if (!separator) {
      separator = recognised(**line, is_tsv ? '\t' : ',');
    }
    rows_.set_dialect({*separator, options_.has_quotes.value_or(!is_tsv && *separator != '\t')});
    return {};
  }

  // The separator that gives all columns, or else the most columns; `usual` among equals.
  [[nodiscard]] char recognised(std::string_view first_row, char usual) const {
    const auto merit = [&](char separator) {
      std::vector<std::string> names = cut_line(first_row, separator);
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

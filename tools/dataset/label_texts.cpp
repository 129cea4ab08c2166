#include "tools/dataset/label_texts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>

#include "common/data/byte_source.hpp"
#include "tools/dataset/skos.hpp"
#include "tools/dataset/tag_forms.hpp"
#include "tools/dataset/text_records.hpp"

namespace gleaner {
namespace {

constexpr std::array<const char*, 3> kIdColumns = {"id", "uri", "label"};

// Labels by id, in the order of their first row.
class LabelTexts {
 public:
  Result<void> add(std::string_view id, std::string_view name, std::string_view notation,
                   std::string_view text) {
    const bool is_bracketed = id.size() > 2 && id.starts_with('<') && id.ends_with('>');
    if (is_bracketed) id = id.substr(1, id.size() - 2);
    if (id.empty()) return Error{ErrorCode::kInvalidData, "expected an id, found none"};
    const auto [place, is_new] = places_.try_emplace(std::string(id), labels_.size());
    if (is_new) labels_.push_back({std::string(id), "", "", {}, false});
    LabelText& label = labels_[place->second];
    if (label.name.empty()) label.name = name;
    if (label.notation.empty()) label.notation = notation;
    for (const std::string_view words : {name, text}) {
      if (!words.empty()) label.texts.emplace_back(words);
    }
    if (!label.texts.empty()) return {};
    return Error{ErrorCode::kInvalidData,
                 fmt::format("expected words of label '{}', found none", id)};
  }

  [[nodiscard]] std::vector<LabelText> take() { return std::move(labels_); }

 private:
  std::vector<LabelText> labels_;
  std::map<std::string, std::size_t> places_;
};

Error at_line(const std::string& path, std::uint64_t line, const Error& error) {
  return {error.code, fmt::format("{}:{}:1: {}", path, line, error.message)};
}

Result<std::unique_ptr<ByteSource>> open_utf8(const std::string& path) {
  auto source = open_file_source(path);
  if (!source) return source;
  return as_utf8(std::move(*source), "");
}

Result<std::string> first_line(const std::string& path) {
  auto source = open_utf8(path);
  if (!source) return source.error();
  LineReader lines(std::move(*source));
  std::string_view line;
  const Result<bool> has_line = lines.next(line);
  if (!has_line) return has_line.error();
  if (*has_line) return std::string(line);
  return Error{ErrorCode::kInvalidData, path + ": expected labels with their words, found none"};
}

// The columns of a table whose first line this is; without an id if it is no table.
TextFields columns_of(std::string_view line) {
  const bool is_json = line.starts_with('{') || line.starts_with('[');
  const std::string_view between = is_json ? ",:{}[]\"" : ",;|\t\"\r";
  std::vector<std::string> names(1);
  for (const char c : line) {
    if (between.find(c) != std::string_view::npos) {
      names.emplace_back();
    } else {
      names.back().push_back(c);
    }
  }
  for (std::string& name : names) name = std::string(trimmed(name));
  const auto has = [&](const char* name) { return std::ranges::find(names, name) != names.end(); };
  TextFields columns;
  for (const char* const name : kIdColumns) {
    if (columns.tags.empty() && has(name)) columns.tags = name;
  }
  for (const char* const name : {"name", "text"}) {
    if (has(name)) columns.text.emplace_back(name);
  }
  if (has("name")) columns.name = "name";
  if (columns.text.empty()) columns.tags.clear();
  return columns;
}

Result<void> read_table(const std::string& path, const std::string& first,
                        const TextFields& columns, LabelTexts& labels) {
  auto source = open_utf8(path);
  if (!source) return source.error();
  RecordOptions options;
  options.form = record_form(path, first);
  // The name alone is read as the text too, so that both are there.
  TextFields fields = columns;
  if (fields.text.size() > 1) fields.text = {"text"};
  auto records = TextRecords::open(std::move(*source), options, fields);
  if (!records) return records.error();
  TextRecord record;
  for (std::uint64_t number = 1;; ++number) {
    const Result<bool> has_record = (*records)->next(record);
    if (!has_record) return has_record.error();
    if (!*has_record) return {};
    const std::string_view name = columns.name.empty() ? "" : trimmed(record.name);
    const std::string_view text = trimmed(record.text);
    auto added = labels.add(trimmed(record.uncut_tags), name, "", text == name ? "" : text);
    if (!added) {
      return Error{ErrorCode::kInvalidData,
                   fmt::format("{}: record {}: {}", path, number, added.error().message)};
    }
  }
}

Result<void> read_list(const std::string& path, LabelTexts& labels) {
  auto source = open_utf8(path);
  if (!source) return source.error();
  LineReader lines(std::move(*source));
  std::string_view line;
  for (;;) {
    const Result<bool> has_line = lines.next(line);
    if (!has_line) return has_line.error();
    if (!*has_line) return {};
    if (trimmed(line).empty()) continue;
    const std::vector<std::string> cells = cut_at(line, "\t");
    if (cells.size() < 2) {
      return at_line(path, lines.line_number(),
                     {ErrorCode::kInvalidData,
                      "expected an id, a tab and a name, or a first line with the columns id and "
                      "name or text"});
    }
    auto added = labels.add(trimmed(cells[0]), trimmed(cells[1]),
                            cells.size() > 2 ? trimmed(cells[2]) : "", "");
    if (!added) return at_line(path, lines.line_number(), added.error());
  }
}

}  // namespace

Result<std::vector<LabelText>> read_label_texts(const std::string& path,
                                                const std::string& language) {
  const Result<std::string> first = first_line(path);
  if (!first) return first.error();
  if (is_rdf(path, *first)) return read_skos(path, language);
  LabelTexts labels;
  const TextFields columns = columns_of(*first);
  const Result<void> read =
      columns.tags.empty() ? read_list(path, labels) : read_table(path, *first, columns, labels);
  if (!read) return read.error();
  return labels.take();
}

}  // namespace gleaner

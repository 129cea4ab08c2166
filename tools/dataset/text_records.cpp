#include "tools/dataset/text_records.hpp"

#include <fcntl.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/data/byte_source.hpp"
#include "tools/dataset/tag_forms.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kBeginningBytesMax = 100;

// Text that fits a line of a file.
std::string one_line(std::string_view text) {
  std::string line(trimmed(text));
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return line;
}

}  // namespace

void TextRecord::add_text(std::string_view more) {
  if (!text.empty()) text += ' ';
  text += more;
}

void TextRecord::add_tag(std::string_view tag) {
  std::string line = one_line(tag);
  if (!line.empty()) tags.push_back(std::move(line));
}

void TextRecord::set_name(std::string_view given) {
  name = one_line(given);
}

// Cuts between whole characters.
void TextRecord::end() {
  if (!name.empty()) return;
  name = one_line(std::string_view(text).substr(0, kBeginningBytesMax));
  if (text.size() <= kBeginningBytesMax) return;
  const auto is_inner = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  std::size_t size = kBeginningBytesMax;
  while (size > 0 && is_inner(text[size])) --size;
  name = one_line(std::string_view(text).substr(0, size)) + " ...";
}

std::optional<RecordForm> named_form(std::string path) {
  for (const std::string_view ending : {".gz", ".zst"}) {
    if (path.ends_with(ending)) path.resize(path.size() - ending.size());
  }
  const auto is_one_of = [&](std::initializer_list<std::string_view> endings) {
    return std::ranges::any_of(endings, [&](auto ending) { return path.ends_with(ending); });
  };
  if (is_one_of({".csv"})) return RecordForm::kCsv;
  if (is_one_of({".tsv", ".tab"})) return RecordForm::kTsv;
  if (is_one_of({".json", ".jsonl", ".ndjson"})) return RecordForm::kJson;
  return std::nullopt;
}

RecordForm record_form(const std::string& path, std::string_view begin) {
  if (const auto named = named_form(path)) return *named;
  const std::string_view first = trimmed(begin);
  return first.starts_with('{') || first.starts_with('[') ? RecordForm::kJson : RecordForm::kCsv;
}

Result<std::unique_ptr<TextRecords>> TextRecords::open(std::unique_ptr<ByteSource> source,
                                                       const RecordOptions& options,
                                                       const TextFields& fields) {
  Result<std::unique_ptr<ByteSource>> utf8 = as_utf8(std::move(source), options.encoding);
  if (!utf8) return utf8.error();
  if (options.form == RecordForm::kJson) return open_json_records(std::move(*utf8), fields);
  return open_csv_records(std::move(*utf8), options, fields);
}

}  // namespace gleaner

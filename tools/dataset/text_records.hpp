// Texts with tags from a table or from JSON: CSV and TSV, whose first row names the columns; JSON
// objects, one per line, over several lines, or in an array. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/data/byte_source.hpp"
#include "common/data/word_model.hpp"
#include "common/result.hpp"
#include "tools/dataset/dataset_command.hpp"

namespace gleaner {

struct TextRecord {
  std::string text;               // all text fields, with blanks between
  std::vector<std::string> tags;  // items of a list, or of cut_tags(); trimmed, none empty
  std::string uncut_tags;         // one text with all tags
  std::string name;               // one line

  void add_text(std::string_view more);
  void add_tag(std::string_view tag);
  void set_name(std::string_view given);
  // Names an example without a name by the beginning of its text.
  void end();
};

enum class RecordForm : std::uint8_t { kCsv, kTsv, kJson };

// The form of the source; empty fields are recognised.
struct RecordOptions {
  RecordForm form = RecordForm::kCsv;
  std::optional<char> separator;   // of CSV and TSV
  std::optional<bool> has_quotes;  // of CSV and TSV; unless given, TSV has none
  std::string encoding;
  bool needs_all = true;  // otherwise columns of tags and names may be missing
};

// By the name's ending, .gz and .zst apart: .csv; .tsv, .tab; .json, .jsonl, .ndjson.
std::optional<RecordForm> named_form(std::string path);
// Unless the name says it, JSON if `begin`, the first bytes of the text, opens an object or an
// array, else CSV.
RecordForm record_form(const std::string& path, std::string_view begin);

class TextRecords {
 public:
  // `fields.text` is not empty. An error about a missing column names the columns.
  static Result<std::unique_ptr<TextRecords>> open(std::unique_ptr<ByteSource> source,
                                                   const RecordOptions& options,
                                                   const TextFields& fields);
  virtual ~TextRecords() = default;

  // False at the end. Errors read "FILE:LINE:COLUMN: expected ..., found ...".
  virtual Result<bool> next(TextRecord& record) = 0;

  // Names a doubtful reading; empty: none.
  [[nodiscard]] virtual std::string warning() const { return {}; }

  [[nodiscard]] virtual const ByteSource& source() const = 0;
};

// Reads CSV (RFC 4180) and TSV. The separator is the character that cuts the first row into
// all wanted columns, or the character of Excel's line "sep=;". `source` is UTF-8.
Result<std::unique_ptr<TextRecords>> open_csv_records(std::unique_ptr<ByteSource> source,
                                                      const RecordOptions& options,
                                                      const TextFields& fields);

// `source` is UTF-8. A field "a.b" is the field b of the object in a, or of each object in
// the list a.
Result<std::unique_ptr<TextRecords>> open_json_records(std::unique_ptr<ByteSource> source,
                                                       const TextFields& fields);

}  // namespace gleaner

// Texts with tags out of a table or of JSON: CSV and TSV, the first row naming the columns; JSON
// objects, one a line, printed over several lines, or in an array. Not thread-safe.
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
  std::string text;               // of all text fields, a blank between them
  std::vector<std::string> tags;  // items of a list, and what cut_tags found; trimmed, none empty
  std::string uncut_tags;         // one text with all tags
  std::string name;               // one line

  void add_text(std::string_view more);
  void add_tag(std::string_view tag);
  void set_name(std::string_view given);
  // Without a given name, an example is known by how its text begins.
  void end();
};

enum class RecordForm : std::uint8_t { kCsv, kTsv, kJson };

// How the source is written; what is empty is recognised.
struct RecordOptions {
  RecordForm form = RecordForm::kCsv;
  std::optional<char> separator;   // of CSV and TSV
  std::optional<bool> has_quotes;  // of CSV and TSV; unless given, TSV has none
  std::string encoding;
};

// By the name's ending, .gz and .zst apart: .csv; .tsv, .tab; .json, .jsonl, .ndjson. Otherwise
// JSON if `begin`, the first bytes of the text, opens an object or an array, else CSV.
RecordForm record_form(std::string path, std::string_view begin);

class TextRecords {
 public:
  // `fields.text` is not empty. The error names what the columns are when one is missing.
  static Result<std::unique_ptr<TextRecords>> open(std::unique_ptr<ByteSource> source,
                                                   const RecordOptions& options,
                                                   const TextFields& fields);
  virtual ~TextRecords() = default;

  // False at the end. Errors read "FILE:LINE:COLUMN: expected ..., found ...".
  virtual Result<bool> next(TextRecord& record) = 0;

  // Names what may not have been read as it was meant; empty: nothing.
  [[nodiscard]] virtual std::string warning() const { return {}; }

  [[nodiscard]] virtual const ByteSource& source() const = 0;
};

// Reads CSV (RFC 4180) and TSV. The separator is the one at which the first row, cut, has all
// columns that are wanted; Excel's line "sep=;" may say it before. `source` is UTF-8.
Result<std::unique_ptr<TextRecords>> open_csv_records(std::unique_ptr<ByteSource> source,
                                                      const RecordOptions& options,
                                                      const TextFields& fields);

// `source` is UTF-8. A field "a.b" is the field b of the object in a, or of each object in its
// list.
Result<std::unique_ptr<TextRecords>> open_json_records(std::unique_ptr<ByteSource> source,
                                                       const TextFields& fields);

}  // namespace gleaner

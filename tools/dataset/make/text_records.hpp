// Texts with tags out of a table: CSV (RFC 4180, the first row naming the columns) or JSON lines
// (an object a line). Plain, gzip or zstd. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/dataset/byte_source.hpp"
#include "common/result.hpp"
#include "common/words/word_model.hpp"

namespace gleaner {

struct TextRecord {
  std::string text;               // of all text fields, a blank between them
  std::vector<std::string> tags;  // trimmed, none empty
  std::string name;               // one line
};

enum class RecordForm : std::uint8_t { kCsv, kTsv, kJsonLines };

// By the name's ending, .gz and .zst apart: .tsv, .jsonl, .ndjson and .json; anything else is CSV.
RecordForm record_form_of_name(std::string path);

class TextRecords {
 public:
  // `fields.text` is not empty. The error names what the columns are when one is missing.
  static Result<std::unique_ptr<TextRecords>> open(std::unique_ptr<ByteSource> source,
                                                   RecordForm form, const TextFields& fields);
  virtual ~TextRecords() = default;

  // False at the end. Errors read "FILE:LINE:COLUMN: expected ..., found ...".
  virtual Result<bool> next(TextRecord& record) = 0;

  [[nodiscard]] virtual const ByteSource& source() const = 0;
};

}  // namespace gleaner

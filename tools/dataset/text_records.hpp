// Texts with tags from a table or from JSON: CSV and TSV, whose first row names the columns; JSON
// objects, one per line, over several lines, or in an array. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
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
};

// By the name's ending, .gz and .zst apart: .csv; .tsv, .tab; .json, .jsonl, .ndjson. Otherwise
// JSON if `begin`, the first bytes of the text, opens an object or an array, else CSV.
RecordForm record_form(std::string path, std::string_view begin);

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

std::string_view trimmed(std::string_view text);
// The parts between separators.
std::vector<std::string> cut_at(std::string_view text, std::string_view separator);

// ---- The form of tags within one text. Pure.

// Names in words.json and --tag-separator for forms without a separator.
inline constexpr const char* kTagList = "list";    // ['a', 'b'], a list of Python or JSON
inline constexpr const char* kTagBrackets = "<>";  // <a><b>
inline constexpr const char* kTagComma = ",";

// The tags of `text`, not trimmed. Cuts at commas where the list or the brackets are missing.
std::vector<std::string> cut_tags(std::string_view text, const std::string& separator);

// Recognises the form from uncut texts.
class TagFormGuess {
 public:
  void add(std::string_view text);

  // kTagList or kTagBrackets if all texts have it; else the first of , ; | that occurs.
  [[nodiscard]] std::string form() const;

  [[nodiscard]] std::uint64_t texts() const { return texts_; }

 private:
  std::uint64_t texts_ = 0;
  std::uint64_t lists_ = 0;
  std::uint64_t brackets_ = 0;
  std::array<bool, 3> has_separator_{};
};

// The form that would cut the label further; empty where the label looks whole.
std::string form_inside(std::string_view label);

// ---- A source of texts that is read several times.

// A file, or a copy of standard input, a pipe or a FIFO in a temporary file, which the object
// removes.
class SpooledFile {
 public:
  // "-" is standard input. Reads a stream to its end. kIo when there is no room for the copy.
  static Result<SpooledFile> of(const std::string& path);

  SpooledFile(SpooledFile&& other) noexcept;
  SpooledFile& operator=(SpooledFile&&) = delete;
  ~SpooledFile();

  // From the beginning, decompressed.
  [[nodiscard]] Result<std::unique_ptr<ByteSource>> open() const;

 private:
  SpooledFile(std::string name, std::string path)
      : name_(std::move(name)), path_(std::move(path)) {}

  std::string name_;  // for messages
  std::string path_;
  int copy_ = -1;  // a file without a name
};

class TextSource {
 public:
  // Recognises the form of the records, and the form of the tags unless `fields` has their
  // separator.
  static Result<TextSource> open(const ConvertFlags& flags, TextFields fields);

  // Calls `use(record, index)` for all records, and returns their number.
  Result<std::uint64_t> for_each(
      const char* doing, const std::function<Result<void>(const TextRecord&, std::uint64_t)>& use);

  // With the recognised separator of tags.
  [[nodiscard]] const TextFields& fields() const { return fields_; }

  // Sentences on recognised forms and doubtful readings.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

  // Notes labels that look like several labels, unless a flag says how to cut.
  void note_labels(const std::vector<std::string>& labels);

 private:
  TextSource(SpooledFile file, RecordOptions options, TextFields fields)
      : file_(std::move(file)), options_(std::move(options)), fields_(std::move(fields)) {}

  Result<std::unique_ptr<TextRecords>> records() const;
  Result<void> recognise_form(const std::string& path);
  Result<void> recognise_tags();

  SpooledFile file_;
  RecordOptions options_;
  TextFields fields_;
  bool cuts_as_recognised_ = false;
  std::vector<std::string> notes_;
};

}  // namespace gleaner

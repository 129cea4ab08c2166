// The records of a source of texts, read as often as needed, with what was recognised about it. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/data/word_model.hpp"
#include "common/result.hpp"
#include "tools/dataset/dataset_command.hpp"
#include "tools/dataset/spooled_file.hpp"
#include "tools/dataset/text_records.hpp"

namespace gleaner {

class TextSource {
 public:
  // Recognises what no flag says: the form of records, and that of tags unless `fields` has a
  // separator for them.
  static Result<TextSource> open(const ConvertFlags& flags, TextFields fields);

  // Calls `use(record, index)` for all records, and returns how many there are.
  Result<std::uint64_t> for_each(
      const char* doing, const std::function<Result<void>(const TextRecord&, std::uint64_t)>& use);

  // With the separator of tags that was recognised.
  [[nodiscard]] const TextFields& fields() const { return fields_; }

  // Says what was recognised and what may have been read wrongly, a sentence each.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

  // Notes that some of the labels look as if they were several, unless a flag says how to cut.
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

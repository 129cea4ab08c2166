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

  // Notes labels that look like several labels, unless a flag says how to cut. Refuses them where
  // most labels do: the guess was wrong.
  Result<void> check_labels(const std::vector<std::string>& labels);

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

// The records of a source of texts, read as often as needed, with what was recognised about it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/data/byte_source.hpp"
#include "common/result.hpp"
#include "tools/dataset/dataset_command.hpp"
#include "tools/dataset/text_records.hpp"

namespace gleaner {

// A source that can be read more than once: a file where it lies; standard input, a pipe or a FIFO
// as a copy in a temporary file, which goes with the object.
class SpooledFile {
 public:
  // "-" is standard input. Reads a stream to its end. kIo when there is no room for the copy.
  static Result<SpooledFile> of(const std::string& path);

  SpooledFile(SpooledFile&& other) noexcept;
  SpooledFile& operator=(SpooledFile&&) = delete;
  ~SpooledFile();

  // From the beginning; decompressed as open_file_source does.
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
  // Recognises what no flag says: the form of records, and that of tags unless `fields` has a
  // separator for them.
  static Result<TextSource> open(const TextFlags& flags, TextFields fields);

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

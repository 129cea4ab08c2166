// The examples to predict, one after the other in constant memory: from a file in any form, from
// standard input as text, or from texts; and a choice among them. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/data/byte_source.hpp"
#include "common/data/name_table.hpp"
#include "common/data/point_parser.hpp"
#include "common/data/text_reader.hpp"
#include "common/data/word_model.hpp"
#include "common/result.hpp"
#include "storage/infer/answering_model.hpp"
#include "tools/cli/console.hpp"
#include "tools/dataset/dataset_stream.hpp"
#include "tools/dataset/text_records.hpp"

namespace gleaner {

// The name of standard input on the command line, and in messages.
inline constexpr const char* kStandardInput = "-";
inline constexpr const char* kStandardInputName = "standard input";

// Examples scored at once: enough that reading the shards is cheap beside the scoring.
inline constexpr std::size_t kExamplesAtOnce = 1024;

// An example and its place.
struct IndexedExample {
  std::uint64_t index = 0;  // in the file, from 0
  Point point;
  std::string name;  // of a record; a line of text names itself; otherwise empty
};

class PredictExamples {
 public:
  // Opens `path`, or standard input for kStandardInput. Refuses ids beyond `options.limits`, which
  // are required, with file and line. `before_wait` runs before each wait for standard input, so
  // that earlier examples need not wait; its failure ends the reading. Errors of the input have
  // code kInvalidData, kInvalidArgument or kIo.
  static Result<std::unique_ptr<PredictExamples>> open(const std::string& path,
                                                       const TextOptions& options,
                                                       std::function<Result<void>()> before_wait);

  // Texts, as examples of the words in `words`: the records of a file whose name ends as
  // named_form() says, with the columns or keys that the data set had; otherwise lines. Tags of a
  // record that `labels` has become its labels. Errors and `before_wait` as above.
  static Result<std::unique_ptr<PredictExamples>> open_texts(
      const std::string& path, WordModel words, const NameTable& labels,
      std::function<Result<void>()> before_wait);

  // Each text is an example, which it names.
  static std::unique_ptr<PredictExamples> of_texts(std::vector<std::string> texts, WordModel words);

  // False at the end.
  Result<bool> next(IndexedExample& point);

  // The number of examples and the dimensions, where the input states them.
  [[nodiscard]] std::optional<std::uint64_t> announced_points() const;
  [[nodiscard]] std::optional<Dimensions> announced() const;

  // Whether the rows are already scaled to length one.
  [[nodiscard]] bool is_normalised() const;

 private:
  PredictExamples() = default;

  struct Texts {
    WordModel words;
    std::unordered_map<std::string, std::uint32_t> labels;  // by name
    std::unique_ptr<TextRecords> records;                   // one of the two; or else
    std::unique_ptr<LineReader> lines;
    std::vector<std::string> given;
  };

  Result<bool> next_text(IndexedExample& point);
  // Changes codes that would mean the store in the exit status. A stream's error may come from
  // before_wait.
  [[nodiscard]] Error input_error(Error error) const;

  std::unique_ptr<PointStream> examples_;  // one of the two
  std::unique_ptr<Texts> texts_;
  bool is_stream_ = false;  // reads standard input
  std::uint64_t next_ = 0;
};

// Options for a verb that reads its examples to the end. `threads` 0: one per core; `candidates` 0:
// no tables.
AnsweringOptions asking_options(unsigned threads, std::uint32_t candidates);
// Limits ids to the model's; errors name `store`.
TextOptions limits_of(const ModelConfig& model, const ReadFlags& read, const std::string& store);
// Refuses scaled rows for a model that trained on unscaled rows.
Result<void> check_scaling(const PredictExamples& examples, const AnsweringModel& model,
                           const std::string& input);

// Reads to the end and chooses `count` of the examples with labels, or all when there are fewer, in
// the file's order. The choice depends on the seed and the places in the file alone.
Result<std::vector<IndexedExample>> choose_examples(PredictExamples& points, std::uint64_t count,
                                                    std::uint64_t seed);

}  // namespace gleaner

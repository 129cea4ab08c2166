// The points to predict for, one after the other in constant memory: out of a file in any form, or
// out of standard input as text; of lines of plain text as well; and a choice of some of them. Not
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/data/byte_source.hpp"
#include "common/data/point_parser.hpp"
#include "common/data/text_reader.hpp"
#include "common/data/word_model.hpp"
#include "common/result.hpp"
#include "storage/infer/answering_model.hpp"
#include "tools/cli/console.hpp"
#include "tools/dataset/dataset_stream.hpp"

namespace gleaner {

// The name of standard input on the command line, and in messages.
inline constexpr const char* kStandardInput = "-";
inline constexpr const char* kStandardInputName = "standard input";

// Points scored at once: enough that reading shards that are not kept costs little beside that.
inline constexpr std::size_t kExamplesAtOnce = 1024;

// A point and where it stands.
struct IndexedExample {
  std::uint64_t index = 0;  // in the file, from 0
  Point point;
  std::string name;  // a line of text is its own; otherwise empty
};

class PredictExamples {
 public:
  // Opens `path`, or standard input for kStandardInput. Ids beyond `options.limits` are refused
  // with file and line. `before_wait` runs each time standard input has nothing more to read yet,
  // so that what was read so far need not wait; its failure ends the reading. The limits are
  // required. Whatever is wrong with the input is kInvalidData, kInvalidArgument or kIo.
  static Result<std::unique_ptr<PredictExamples>> open(const std::string& path,
                                                       const TextOptions& options,
                                                       std::function<Result<void>()> before_wait);

  // Lines of text, each a point of the words that `words` knows; errors and `before_wait` as above.
  static Result<std::unique_ptr<PredictExamples>> open_texts(
      const std::string& path, WordModel words, std::function<Result<void>()> before_wait);

  // False at the end.
  Result<bool> next(IndexedExample& point);

  // Numbers of points and dimensions as far as the input states them.
  [[nodiscard]] std::optional<std::uint64_t> announced_points() const;
  [[nodiscard]] std::optional<Dimensions> announced() const;

  // Whether the values have been scaled to rows of length one already.
  [[nodiscard]] bool is_normalised() const;

 private:
  PredictExamples() = default;

  struct Texts {
    LineReader lines;
    WordModel words;
  };

  // Whatever is wrong with a file of examples, it is not the store: the codes that both share mean
  // the store to whoever turns them into an exit status. A stream's error may be before_wait's.
  [[nodiscard]] Error input_error(Error error) const;

  std::unique_ptr<PointStream> examples_;  // one of the two
  std::unique_ptr<Texts> texts_;
  bool is_stream_ = false;  // of standard input
  std::uint64_t next_ = 0;
};

// How a model is opened by a verb that reads its examples to the end. `threads` 0: one a core;
// `candidates` 0: no tables.
AnsweringOptions asking_options(unsigned threads, std::uint32_t candidates);
// Ids of the examples must be among the model's, which lies in `store`.
TextOptions limits_of(const ModelConfig& model, const ReadFlags& read, const std::string& store);
// Refuses rows that were scaled for a model that trained on rows as they are.
Result<void> check_scaling(const PredictExamples& examples, const AnsweringModel& model,
                           const std::string& input);

// Reads to the end and returns `count` of the points that have labels, in the file's order; all of
// them when there are no more. Which ones depends on the seed and on places in the file alone.
Result<std::vector<IndexedExample>> choose_examples(PredictExamples& points, std::uint64_t count,
                                                    std::uint64_t seed);

}  // namespace gleaner

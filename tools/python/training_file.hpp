// Examples of a Python program on their way into a packed file, which the master maps as it is: no
// text form comes between. Memory is that of the rows in hand. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/data/packed_writer.hpp"
#include "common/data/point_parser.hpp"
#include "common/data/word_model.hpp"
#include "common/result.hpp"
#include "storage/infer/predict_data.hpp"
#include "tools/python/csr_rows.hpp"

namespace gleaner {

// The words of texts: counted first, then the rule by which each text becomes an example.
class TextWords {
 public:
  // `rule` as parse_word_rule() reads it.
  static Result<TextWords> of_rule(const std::string& rule);

  // The words of a model, which stay as they are. Requires that it has words.
  static TextWords of_model(const PredictData& data) { return TextWords(*data.words()); }

  void count(const std::string& text);

  // Ends the counting: words that this number of texts have become features.
  void number(std::uint32_t least) { model_.words.number(least); }

  [[nodiscard]] const WordModel& model() const { return model_; }

 private:
  explicit TextWords(WordModel model) : model_(std::move(model)) {}

  WordModel model_;
};

class TrainingFile {
 public:
  // `normalise` as the run's setting data.l2_normalise. `dimensions` belong to the data set.
  static Result<std::unique_ptr<TrainingFile>> create(const std::string& path,
                                                      Dimensions dimensions, bool normalise);

  // `labels`: as many rows as `rows`, columns alone. kInvalidArgument names the row of X or Y that
  // is wrong.
  Result<void> add_rows(const CsrRows& rows, const CsrRows& labels);
  Result<void> add_texts(const std::vector<std::string>& texts, const TextWords& words,
                         const CsrRows& labels);
  Result<void> finish();

 private:
  TrainingFile(std::unique_ptr<PackedWriter> writer, Dimensions dimensions)
      : writer_(std::move(writer)), dimensions_(dimensions) {}

  Result<void> check_labels(const CsrRows& labels, std::size_t rows) const;

  std::unique_ptr<PackedWriter> writer_;
  Dimensions dimensions_;
};

}  // namespace gleaner

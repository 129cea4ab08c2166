// A program's questions to a model, read from one request in JSON. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/data/name_table.hpp"
#include "common/model/model_config.hpp"
#include "common/result.hpp"
#include "storage/infer/predict_data.hpp"
#include "storage/infer/prediction.hpp"

namespace gleaner {

inline constexpr std::size_t kQuestionInputsMax = 1024;
// Bound of inputs times requested labels, and thereby of an answer.
inline constexpr std::size_t kQuestionLabelsMax = 20'000;

struct Questions {
  std::vector<Prediction> inputs;  // without predictions
  std::uint32_t top_k = 5;
  bool through_tables = false;
  float threshold = 0;  // least probability of a predicted label
};

// kInvalidArgument: `what` is wrong with the field.
Error wrong_field(std::string_view field, std::string_view what);

// A question about a text. kInvalidArgument names the field if texts cannot be read.
Result<Prediction> text_question(std::string text, const std::string& field,
                                 const PredictData& data);

// The fields are defined by PredictRequest in openapi.json. kInvalidArgument names a wrong field.
// With `has_tables` the answers come through tables unless `exact` is true.
Result<Questions> read_questions(std::string_view body, const PredictData& data,
                                 const ModelConfig& model, bool has_tables);

}  // namespace gleaner

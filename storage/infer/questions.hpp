// A program's questions to a model in one request, read from JSON. Pure.
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
// Inputs times labels asked for: this bounds an answer.
inline constexpr std::size_t kQuestionLabelsMax = 20'000;

struct Questions {
  std::vector<Prediction> inputs;  // nothing is predicted yet
  std::uint32_t top_k = 5;
  bool through_tables = false;
  float threshold = 0;  // least probability of a label
};

// One question of a text. kInvalidArgument names the field where texts cannot be read.
Result<Prediction> text_question(std::string text, const std::string& field,
                                 const PredictData& data);

// The fields are those of PredictRequest in openapi.json. kInvalidArgument names the field that is
// wrong. `has_tables`: the answers come through tables unless `exact` is true.
Result<Questions> read_questions(std::string_view body, const PredictData& data,
                                 const ModelConfig& model, bool has_tables);

// Questions and answers in the form of Annif, the subject indexer of libraries, whose backend
// `http` lets other services suggest subjects. Pure.

// Reads a form as browsers send it (application/x-www-form-urlencoded): `text`, and if wanted
// `limit` (labels, 10 unless given; beyond kTopKMax as many) and `threshold` (least probability).
// Other fields, such as Annif's project and metadata, are passed over. kInvalidArgument names the
// field that is wrong.
Result<Questions> read_annif_question(std::string_view body, const PredictData& data,
                                      bool has_tables);

// {"results": [...]}: for each predicted label of at least this probability `uri`, `label`,
// `notation` (null) and `score`. Annif finds a subject by its URI: that is the label's name,
// without the angle brackets around <http://...>, or its number for want of a name.
std::string annif_json(const Prediction& prediction, const NameTable& labels, float threshold);

// The project that Annif asks for before it suggests.
std::string annif_project_json(bool has_model);

}  // namespace gleaner

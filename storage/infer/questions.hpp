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

// A question as Annif sends it: Annif, the subject indexer of libraries, gets suggestions from
// other services through its backend `http`. Reads a browser's form
// (application/x-www-form-urlencoded): `text`, and optionally `limit` (labels; 10 by default, at
// most kTopKMax) and `threshold` (least probability). Ignores other fields, such as Annif's project
// and metadata. kInvalidArgument names a wrong field.

// Reads a form as browsers send it (application/x-www-form-urlencoded): `text`, and if wanted
// `limit` (labels, 10 unless given; beyond kTopKMax as many) and `threshold` (least probability).
// Other fields, such as Annif's project and metadata, are passed over. kInvalidArgument names the
// field that is wrong.
Result<Questions> read_annif_question(std::string_view body, const PredictData& data,
                                      bool has_tables);

// {"results": [...]} with `uri`, `label`, `notation` (null) and `score` of each predicted label of
// at least this probability. Annif finds a subject by its URI: the label's name without angle
// brackets around <http://...>, or the label's number if it has no name.
std::string annif_json(const Prediction& prediction, const NameTable& labels, float threshold);

// The project description that Annif requests before it asks for suggestions.
std::string annif_project_json(bool has_model);

}  // namespace gleaner

// A question as Annif sends it: Annif, the subject indexer of libraries, gets suggestions from
// other services through its backend `http`. Reads a browser's form
// (application/x-www-form-urlencoded): `text`, and optionally `limit` (labels; 10 by default, at
// most kTopKMax) and `threshold` (least probability). Ignores other fields, such as Annif's project
// and metadata. kInvalidArgument names a wrong field.
#pragma once

#include <string>
#include <string_view>

#include "common/data/name_table.hpp"
#include "common/result.hpp"
#include "storage/infer/predict_data.hpp"
#include "storage/infer/prediction.hpp"
#include "storage/infer/questions.hpp"

namespace gleaner {

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

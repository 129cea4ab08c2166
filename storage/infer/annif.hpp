// A question as Annif sends it: Annif, the subject indexer of libraries, gets suggestions from
// other services through its backend `http`. Reads a browser's form
// (application/x-www-form-urlencoded): `text`, and optionally `limit` (labels; 10 by default, at
// most kTopKMax) and `threshold` (least probability). Ignores other fields, such as Annif's project
// and metadata. kInvalidArgument names a wrong field. Clients of Annif itself ask by the paths of
// its REST API: a form, a batch of documents in JSON, and documents with their subjects to learn
// from.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/data/name_table.hpp"
#include "common/result.hpp"
#include "storage/infer/predict_data.hpp"
#include "storage/infer/prediction.hpp"
#include "storage/infer/questions.hpp"

namespace gleaner {

// The project's name, of which there is one.
inline constexpr const char* kAnnifProject = "gleaner";

// As they stand in a form or query, if they are given.
struct AnnifLimits {
  std::optional<std::string> limit{};
  std::optional<std::string> threshold{};
};

Result<void> take_annif_limits(const AnnifLimits& limits, Questions& questions);

Result<Questions> read_annif_question(std::string_view body, const PredictData& data,
                                      bool has_tables);

// The list of results alone.
std::string annif_results(const Prediction& prediction, const PredictNames& names, float threshold);

// {"results": [...]} with `uri`, `label`, `notation` and `score` of each predicted label of at
// least this probability. Annif finds a subject by its URI: the label's name without angle brackets
// around <http://...>, or the label's number if it has no name. `label` is the URI and `notation`
// null where they are not known.
std::string annif_json(const Prediction& prediction, const PredictNames& names, float threshold);

// The project description that Annif requests before it asks for suggestions, and the list of
// projects, which has this one.
std::string annif_project_json(bool has_model, const std::string& id);
std::string annif_projects_json(bool has_model);

}  // namespace gleaner
